"""That settings and states arrive where they count: from the configuration to the step, from a run to its screen."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
import torch
from train_cases import differences, log_of, make_step, parts_of, run, tiny

from routelearn import policies
from routelearn.commands.train import Screen
from routelearn.policies.base import shape_of
from routelearn.problems import DeviceRng, get
from routelearn.training import checkpoint
from routelearn.training import validation as validation_module
from routelearn.training.baselines.rollout import paired_p_value
from routelearn.training.state import make_baseline
from routelearn.training.validation import validate


def state_of(out):
    return checkpoint.load(out / "checkpoint.pt")


def policy_of(config):
    return policies.build(config.policy, shape_of(get(config.problem)), config.policy_options())


def baseline_of(config, policy=None):
    problem, size = get(config.problem), config.sizes[0]
    steps = {size: problem.max_steps(problem.sample(DeviceRng(), 64, size))}
    policy = policy_of(config) if policy is None else policy
    return make_baseline(parts_of(config, policy, steps))


# --------------------------------------------------------------------------------------------- baselines


@pytest.mark.parametrize("policy", ["attention", "pointer", "ean", "nazari", "nowak", "dai"])
def test_the_critic_learns_in_a_run(tmp_path, policy):
    """Next to a run whose rate is too small to move anything, which leaves the critic as both began with it."""
    config = tiny(policy=policy, baseline="critic", solutions=1, norm="layer", epochs=1, rate=1e-3)
    run(config, tmp_path / "moving")
    run(replace(config, rate=1e-15), tmp_path / "still")
    moved, began = (state_of(tmp_path / name)["baseline"] for name in ("moving", "still"))
    unmoved = [name for name in began if not (moved[name] - began[name]).abs().max() > 1e-5]
    assert began
    assert unmoved == []


def test_the_critics_estimates_come_near_the_costs(tmp_path):
    run(tiny(baseline="critic", solutions=1, epochs=8, epoch_steps=5, batch=(32,), rate=3e-3), tmp_path)
    errors = [abs(row["value"] - row["cost"]) for row in log_of(tmp_path)]
    assert errors[-1] < 0.5 * errors[0]


@pytest.mark.parametrize(("policy", "reads_in_order"), [("pointer", True), ("attention", False), ("nazari", False)])
def test_the_pointer_network_has_a_critic_that_reads_in_order_as_it_does_itself(policy, reads_in_order):
    config = tiny(policy=policy, baseline="critic", solutions=1)
    critic, problem = baseline_of(config), get("tsp")
    x = problem.sample(DeviceRng(), 5, 6)
    turned = x._replace(xy=x.xy.flip(1))
    forwards, backwards = (critic.prepare(instances, problem.features(instances)) for instances in (x, turned))
    assert bool((forwards - backwards).abs().max() > 1e-4) == reads_in_order


@pytest.mark.parametrize("beta", [0.25, 0.9])
@pytest.mark.parametrize("name", ["exponential", "rollout"])
def test_the_average_forgets_as_fast_as_beta_says(name, beta):
    baseline = baseline_of(tiny(baseline=name, solutions=1, beta=beta))
    baseline.phase(0)
    first, second = torch.full((8, 1), 4.0), torch.full((8, 1), 6.0)
    assert baseline.value(None, first).item() == pytest.approx(4.0)
    assert baseline.value(None, second).item() == pytest.approx(4 * beta + 6 * (1 - beta))


@pytest.mark.parametrize("epochs", [0, 1, 3])
def test_the_rollout_baseline_warms_up_for_as_many_epochs_as_it_is_told(epochs):
    baseline, problem = baseline_of(tiny(baseline="rollout", solutions=1, warmup_epochs=epochs)), get("tsp")
    x = problem.sample(DeviceRng(), 2, 6)
    rolls_out = []
    for epoch in range(5):
        baseline.phase(epoch)
        rolls_out.append(baseline.prepare(x, problem.features(x)) is not None)
    assert rolls_out == [epoch >= epochs for epoch in range(5)]


def test_the_t_test_replaces_the_frozen_policy_at_the_level_it_is_given():
    config, problem = tiny(baseline="rollout", solutions=1), get("tsp")
    pair = [policy_of(config), policy_of(config)]
    instances = baseline_of(config).instances
    costs = [torch.cat([validate(problem, policy, x, "float32") for x in instances]).double() for policy in pair]
    better = 0 if costs[0].mean() < costs[1].mean() else 1
    p = paired_p_value(costs[better], costs[1 - better])
    assert 0 < p < 1
    for level, replaced in ((1.05 * p, True), (0.95 * p, False)):
        baseline = baseline_of(tiny(baseline="rollout", solutions=1, significance=level), pair[1 - better])
        assert (baseline.end_epoch(pair[better], 0) is not None) == replaced


# ------------------------------------------------------------------------------------ back to the best


@pytest.mark.parametrize(
    ("name", "optimiser"), [("exponential", "adam"), ("critic", "muon"), ("critic", "adam"), ("rollout", "adam")]
)
def test_going_back_to_the_best_brings_back_all_that_was_then(tmp_path, monkeypatch, name, optimiser):
    """A run that goes back after its second epoch is what another is after its first."""
    config = tiny(
        baseline=name, optimiser=optimiser, solutions=1, norm="batch", batch=(32,), rate=1e-2, evaluation_instances=40
    )
    judge = validation_module.validate

    def validations(*totals):
        """These for the validation set, the last for all that follow; a rollout baseline's own test stays as it is."""
        left = list(totals)

        def forced(problem, policy, x, precision):
            judged = x.xy.shape[0] == config.validation_instances
            if not judged:
                return judge(problem, policy, x, precision)
            return torch.full((4,), left.pop(0) if len(left) > 1 else left[0])

        monkeypatch.setattr(validation_module, "validate", forced)

    validations(1.0)
    run(replace(config, epochs=1), tmp_path / "one")
    validations(1.0, 1.2)
    run(config, tmp_path / "back")
    validations(1.0)
    run(config, tmp_path / "on")
    one, back, on = (state_of(tmp_path / part) for part in ("one", "back", "on"))
    assert (back["rollbacks"], on["rollbacks"]) == (1, 0)
    assert differences(one["baseline"], on["baseline"]), "the second epoch changed nothing"
    assert differences(one["baseline"], back["baseline"]) == []
    assert differences(one["policy"], back["policy"]) == []
    memories, changed = one["optimiser"]["state"], on["optimiser"]["state"]
    adam, muon = frozenset({"step", "exp_avg", "exp_avg_sq"}), frozenset({"momentum"})
    assert {frozenset(memory) for memory in memories.values()} == ({adam, muon} if optimiser == "muon" else {adam})
    assert all(differences(memories[i][kind], changed[i][kind]) for i in memories for kind in memories[i])
    assert differences(memories, back["optimiser"]["state"]) == []


# ------------------------------------------------------------------------------------------ time and rate


def stop_after(out, seconds):
    """A run of one epoch that seems to have taken so long."""
    run(tiny(epochs=1), out)
    checkpoint.save(out / "checkpoint.pt", {**state_of(out), "elapsed": seconds})


def test_a_run_whose_minutes_are_over_makes_no_more_steps_when_it_is_resumed(tmp_path):
    stop_after(tmp_path, 61.0)
    report = run(tiny(epochs=3, minutes=1.0), tmp_path, resume=True)
    assert report.step == 3
    assert 60 * report.minutes >= 61


def test_time_spent_before_a_resume_counts_for_clock_and_schedule(tmp_path):
    stop_after(tmp_path, 600.0)
    config = tiny(epochs=1000, minutes=20.0, schedule="linear")  # of its steps next to none are made
    seen = []

    class Enough(Exception):
        pass

    def report(row):
        seen.append(row)
        raise Enough

    with pytest.raises(Enough):
        run(config, tmp_path, resume=True, look_seconds=0.0, report=report)
    (row,) = seen
    assert 600 <= row["elapsed"] < 900
    assert 0.5 <= row["progress"] < 0.75
    assert row["rate"] == pytest.approx(config.rate * (1 - row["progress"]))


def test_a_resumed_runs_time_is_written_down_with_what_was_spent_before(tmp_path):
    stop_after(tmp_path, 600.0)
    run(tiny(epochs=2), tmp_path, resume=True)
    assert 600 <= state_of(tmp_path)["elapsed"] < 900
    assert 600 <= log_of(tmp_path)[-1]["elapsed"] < 900


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_schedule_holds_the_full_rate_for_its_share_of_the_run(tmp_path, schedule):
    config = tiny(epochs=2, epoch_steps=5, schedule=schedule, hold=0.4)
    run(config, tmp_path, look_seconds=0.0)
    rates = {row["progress"]: row["rate"] / config.rate for row in log_of(tmp_path)}
    held = {progress: rate for progress, rate in rates.items() if progress <= 0.4}
    falling = {progress: rate for progress, rate in rates.items() if progress > 0.4}
    assert len(held) > 1
    assert len(falling) > 1
    assert list(held.values()) == [1.0] * len(held)
    for progress, rate in falling.items():
        part = (progress - 0.4) / 0.6
        expected = {"linear": 1 - part, "cosine": (1 + math.cos(math.pi * part)) / 2}[schedule]
        assert rate == pytest.approx(expected)


# ------------------------------------------------------------------------------------- exploding gradients


def step_beside(usual, explosion):
    """The same first step every time, as if gradients had that norm so far: (what was read, whether weights moved)."""
    torch.manual_seed(1)
    step = make_step(tiny(explosion=explosion))
    before = [parameter.detach().clone() for parameter in step.policy.parameters()]
    step.norm_average.fill_(usual)
    step()
    return step.meter.read(), bool(differences(before, [p.detach() for p in step.policy.parameters()]))


@pytest.mark.parametrize("explosion", [1.5, 4.0, 200.0])
def test_a_gradient_is_too_large_just_where_the_setting_says(explosion):
    norm = step_beside(0.0, explosion)[0]["gradient_norm"]
    below, moved = step_beside(norm / (0.97 * explosion), explosion)
    assert (below["steps"], below["skipped"], moved) == (1, 0, True)
    above, moved = step_beside(norm / (1.03 * explosion), explosion)
    assert (above["steps"], above["skipped"], moved) == (1, 1, False)


def test_a_run_skips_what_its_configuration_calls_an_explosion(tmp_path):
    config = tiny(epochs=2, epoch_steps=3)
    assert run(config, tmp_path / "usual").skipped == 0
    strict = run(replace(config, explosion=1e-4), tmp_path / "strict")
    assert strict.skipped == 5, "all but the first step, which there is nothing to compare with"


# ----------------------------------------------------------------------------------------------- live line


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Standard output as rich sees a terminal, wide enough for one line; what was drawn there, as plain words."""
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", "400"), ("LINES", "50")):
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    return lambda: re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().out)


def test_the_live_line_tells_speed_costs_gap_gradient_rate_and_time_left(tmp_path, terminal):
    row = {"step": 40, "epoch": 2, "instances": 3_250_000, "elapsed": 120.0, "progress": 0.1, "skipped": 7,
           "instances_per_second": 23_456.0, "cost": 4.4321, "value": 4.5, "gradient_norm": 0.63,
           "rate": 2.5e-4}  # fmt: skip
    with Screen(tmp_path, quiet=False, silent=False) as screen:
        screen(row | {"validation": {"20": 3.8765, "50": 5.9182}, "gap": {"20": 0.0123}, "note": "something happened"})
        screen(row | {"step": 60, "progress": 0.25, "cost": 4.2109})  # what was validated stays in sight
    lines = terminal().splitlines()
    assert any("something happened" in line for line in lines)
    last = next(line for line in reversed(lines) if line.strip())
    for words in ("23,456/s", "cost 4.2109", "n=20 3.8765 (+1.23%)", "n=50 5.9182", "|g| 0.63", "rate 2.5e-04",
                  "skipped 7", "left 6.0 min"):  # fmt: skip
        assert words in last


def test_the_live_line_of_a_run_says_what_its_log_says(tmp_path, terminal):
    with Screen(tmp_path, quiet=False, silent=False) as screen:
        run(tiny(), tmp_path, reference={6: torch.full((32,), 2.0)}, report=screen)
    row = log_of(tmp_path)[-1]
    last = next(line for line in reversed(terminal().splitlines()) if line.strip())
    for words in (f"{row['instances_per_second']:,.0f}/s", f"cost {row['cost']:.4f}", f"{row['validation']['6']:.4f}",
                  f"({row['gap']['6']:+.2%})", f"|g| {row['gradient_norm']:.2f}",
                  f"rate {row['rate']:.1e}"):  # fmt: skip
        assert words in last


def test_a_look_at_which_no_step_was_applied_is_shown_all_the_same(tmp_path, terminal):
    with Screen(tmp_path, quiet=False, silent=False) as screen:
        run(tiny(explosion=1e-4), tmp_path, report=screen)
    assert "skipped 5" in terminal()


def test_quiet_draws_no_live_line(tmp_path, terminal):
    with Screen(tmp_path, quiet=True, silent=False) as screen:
        run(tiny(epochs=1), tmp_path, report=screen)
    assert terminal() == ""
