"""Stands in for LKH-3, Concorde and Compass: reads their formats strictly, answers in theirs.

python standin.py {lkh|concorde|compass} ARGUMENTS. It refuses (exit status 2, no output file) what the formats
do not allow, and what the programs are known not to bear. STANDIN_HANG=K makes it hang on seeds whose remainder by
10 is below K. STANDIN_CUT=1 makes it begin a second, cheaper tour as LKH-3 and hang before that is written.
STANDIN_ABORT=K makes it abort as Compass on a matrix of at most 21 nodes, on seeds as above.
"""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path

KNOWN = {
    "NAME", "TYPE", "COMMENT", "DIMENSION", "CAPACITY", "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT", "COST_LIMIT",
}  # fmt: skip
PARAMETERS = {
    "PROBLEM_FILE", "OUTPUT_TOUR_FILE", "RUNS", "SEED", "TIME_LIMIT", "TRACE_LEVEL", "MAX_TRIALS", "VEHICLES",
    "MTSP_MIN_SIZE", "SPECIAL",
}  # fmt: skip


def refuse(reason: str) -> None:
    print(reason, file=sys.stderr)
    raise SystemExit(2)


def whole(word: str, what: str) -> int:
    if not word.lstrip("-").isdecimal():
        refuse(f"{what}: integer expected, not {word!r}")
    return int(word)


def read_instance(path: str, kinds: tuple[str, ...]) -> dict:
    lines = [line.strip() for line in Path(path).read_text().splitlines()]
    if lines[-1] != "EOF":
        refuse("no EOF")
    header, sections, current = {}, {}, None
    for line in lines[:-1]:
        if line.endswith("_SECTION"):
            current = sections.setdefault(line, [])
        elif current is None:
            key, colon, value = line.partition(":")
            if not colon or key.strip() not in KNOWN or not value.strip():
                refuse(f"bad line {line!r}")
            header[key.strip()] = value.strip()
        else:
            current.append([whole(word, "section") for word in line.split()])
    if header.get("TYPE") not in kinds:
        refuse(f"TYPE {header.get('TYPE')}")
    n = whole(header.get("DIMENSION", "none"), "DIMENSION")
    kind = header.get("EDGE_WEIGHT_TYPE")
    if kind in ("EUC_2D", "CEIL_2D"):
        rows = sections.get("NODE_COORD_SECTION", [])
        if [row[0] for row in rows] != list(range(1, n + 1)) or any(len(row) != 3 for row in rows):
            refuse("NODE_COORD_SECTION")
        fit = math.ceil if kind == "CEIL_2D" else round
        legs = [[fit(math.dist(a[1:], b[1:])) for b in rows] for a in rows]
    elif kind == "EXPLICIT":
        legs = sections.get("EDGE_WEIGHT_SECTION", [])
        if header.get("EDGE_WEIGHT_FORMAT") != "FULL_MATRIX" or [len(row) for row in legs] != [n] * n:
            refuse("EDGE_WEIGHT_SECTION")
        if not header["TYPE"].startswith("A") and any(legs[a][b] != legs[b][a] for a in range(n) for b in range(n)):
            refuse("the matrix of a symmetric type is asymmetric")
    else:
        refuse(f"EDGE_WEIGHT_TYPE {kind}")
    if max(max(row) for row in legs) > 2**31 // n:
        refuse("weights overflow")
    for section in ("DEMAND_SECTION", "NODE_SCORE_SECTION"):
        if section in sections and [row[0] for row in sections[section]] != list(range(1, n + 1)):
            refuse(section)
    if "DEPOT_SECTION" in sections and sections["DEPOT_SECTION"] != [[1], [-1]]:
        refuse("DEPOT_SECTION")
    return {"n": n, "legs": legs, "header": header, "sections": sections}


def maybe_hang(seed: int) -> None:
    while seed % 10 < int(os.environ.get("STANDIN_HANG", "0")):
        time.sleep(1)


def hang() -> None:
    while True:
        time.sleep(1)


def nearest(legs: list, nodes: list[int]) -> list[int]:
    order, left = [nodes[0]], set(nodes[1:])
    while left:
        order.append(min(left, key=lambda node: legs[order[-1]][node]))
        left.remove(order[-1])
    return order


def lkh(arguments: list[str]) -> None:
    (path,) = arguments
    settings = {}
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition("=")
        if key.strip() not in PARAMETERS or (key.strip() == "SPECIAL") != (not value.strip()):
            refuse(f"unknown or incomplete parameter {line!r}")
        settings[key.strip()] = value.strip()
    for key in ("RUNS", "SEED", "MAX_TRIALS", "VEHICLES"):
        if key in settings and whole(settings[key], key) < 1:
            refuse(key)
    if float(settings["TIME_LIMIT"]) <= 0:
        refuse("TIME_LIMIT")
    maybe_hang(int(settings["SEED"]))
    given = read_instance(settings["PROBLEM_FILE"], ("TSP", "ATSP", "CVRP", "ACVRP"))
    n, legs = given["n"], given["legs"]
    order = nearest(given["legs"], list(range(n)))
    numbers = [node + 1 for node in order]
    if given["header"]["TYPE"].endswith("CVRP"):
        capacity = whole(given["header"]["CAPACITY"], "CAPACITY")
        if "DEPOT_SECTION" not in given["sections"]:
            refuse("no DEPOT_SECTION")
        demand = [row[1] for row in given["sections"]["DEMAND_SECTION"]]
        numbers, load, copies = [1], 0, n
        for node in order[1:]:
            if load + demand[node] > capacity:
                copies, load = copies + 1, 0
                numbers.append(copies)  # LKH-3 numbers the depot's copies beyond the nodes
            load += demand[node]
            numbers.append(node + 1)
        if copies - n + 1 > int(settings["VEHICLES"]):
            refuse("more routes than VEHICLES")
        numbers = numbers[3:] + numbers[:3]  # a tour file may begin anywhere
    text = ["NAME : instance.1.tour", "COMMENT : Length = 1", "TYPE : TOUR", f"DIMENSION : {len(numbers)}"]
    text += ["TOUR_SECTION", *map(str, numbers), "-1", "EOF"]
    cost = sum(legs[(a - 1) % n][(b - 1) % n] for a, b in zip(numbers, numbers[1:] + numbers[:1], strict=True))
    output = settings["OUTPUT_TOUR_FILE"]
    Path(output.replace("$", str(cost))).write_text("\n".join(text) + "\n")
    if os.environ.get("STANDIN_CUT"):  # without $ it would be the same file
        Path(output.replace("$", str(cost - 1))).write_text("\n".join(text[: len(text) // 2]) + "\n")
        hang()


def concorde(arguments: list[str]) -> None:
    flag_s, seed, flag_x, flag_o, output, path = arguments
    if (flag_s, flag_x, flag_o) != ("-s", "-x", "-o"):
        refuse("usage")
    maybe_hang(whole(seed, "seed"))
    given = read_instance(path, ("TSP",))
    order = nearest(given["legs"], list(range(given["n"])))
    lines = [" ".join(map(str, order[i : i + 10])) + " " for i in range(0, len(order), 10)]
    Path(output).write_text("\n".join([str(given["n"]), *lines]) + "\n")


def compass(arguments: list[str]) -> None:
    *options, path, flag_o, output = arguments
    if options[:3] != ["--op", "--op-ea4op", "--seed"] or options[4] != "--tmlim" or flag_o != "-o":
        refuse("usage")
    maybe_hang(whole(options[3], "seed"))
    if float(options[5]) <= 0:
        refuse("tmlim")
    given = read_instance(path, ("OP",))
    n, legs, header = given["n"], given["legs"], given["header"]
    small = header["EDGE_WEIGHT_TYPE"] == "EXPLICIT" and n <= 21
    if small and int(options[3]) % 10 < int(os.environ.get("STANDIN_ABORT", "0")):
        print("assertion failed", file=sys.stderr, flush=True)
        os.abort()
    scores = [row[1] for row in given["sections"]["NODE_SCORE_SECTION"]]
    if "NAME" in header:
        refuse("some builds crash at a NAME")
    limit, order, length = whole(header["COST_LIMIT"], "COST_LIMIT"), [0], 0
    if all(2 * leg > limit for leg in legs[0][1:]):
        os.abort()
    for node in sorted(range(1, n), key=lambda i: -scores[i]):
        extra = length - legs[order[-1]][0] if len(order) > 1 else 0
        extra += legs[order[-1]][node] + legs[node][0]
        if extra <= limit:
            order, length = [*order, node], extra
    turned = order[1:] + order[:1]  # the depot need not come first
    text = ["NAME : instance", "TYPE : OP", f"DIMENSION : {n}", f"COST_LIMIT : {limit:.2f}"]
    text += [f"ROUTE_NODES : {len(order)}", f"ROUTE_SCORE : {sum(scores[i] for i in order):.2f}"]
    text += [f"ROUTE_COST : {length:.2f}", "NODE_SEQUENCE_SECTION", *(str(node + 1) for node in turned), "-1"]
    Path(output).write_text("\n".join([*text, "DEPOT_SECTION", "1", "-1", "EOF"]) + "\n")


if __name__ == "__main__":
    {"lkh": lkh, "concorde": concorde, "compass": compass}[sys.argv[1]](sys.argv[2:])
