// Names beside dots so that none covers another: greedy, the most important first; who finds no room gets none.

const pen = document.createElement("canvas").getContext("2d");
const MOST = 150; // that are tried: a map with more names is not read

const apart = (one, other) => one[2] <= other[0] || other[2] <= one[0] || one[3] <= other[1] || other[3] <= one[1];

// Whether a line between two points goes through a box (Liang and Barsky's clipping).
function crosses([left, top, right, bottom], [x1, y1, x2, y2]) {
  let [from, to] = [0, 1];
  for (const [towards, room] of [[x1 - x2, x1 - left], [x2 - x1, right - x1], [y1 - y2, y1 - top], [y2 - y1, bottom - y1]]) {
    if (towards === 0 && room < 0) return false;
    if (towards < 0) from = Math.max(from, room / towards);
    if (towards > 0) to = Math.min(to, room / towards);
  }
  return from <= to;
}

// `wanted`: {x, y, radius, text, rank, named: in heavy type}; `taken`: boxes [left, top, right, bottom] to keep clear of;
// `lines`: [x1, y1, x2, y2] to keep clear of where that is possible. Gives those that have room, with `box`, `left` and
// `base` (where letters begin).
export function placed(wanted, taken, lines, [wide, high], size = 12) {
  const boxes = [...taken];
  const found = [];
  for (const one of [...wanted].sort((a, b) => b.rank - a.rank).slice(0, MOST)) {
    pen.font = `${one.named ? 600 : 400} ${size}px system-ui, sans-serif`;
    const [w, h] = [pen.measureText(one.text).width + 2, size + 2];
    const gap = one.radius + 3;
    const slant = one.radius * 0.7 + 2;
    const corners = [
      [gap, -h / 2], [-gap - w, -h / 2], [slant, -slant - h], [slant, slant], [-slant - w, -slant - h], [-slant - w, slant],
      [-w / 2, -gap - h], [-w / 2, gap],
    ];
    const free = corners.map(([dx, dy]) => [one.x + dx, one.y + dy, one.x + dx + w, one.y + dy + h]).filter((box) =>
      box[0] >= 2 && box[1] >= 2 && box[2] <= wide - 2 && box[3] <= high - 2 && boxes.every((other) => apart(box, other)));
    const box = free.find((room) => !lines.some((line) => crosses(room, line))) || free[0];
    if (!box) continue;
    boxes.push(box);
    found.push({ ...one, box, left: box[0] + 1, base: box[3] - 4 });
  }
  return found;
}
