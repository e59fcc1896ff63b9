// Pointer, wheel, fingers and keys on a map. A press that does not move is a click; one that moves drags what it began
// on: a stop if it may be moved, else the map. Two fingers zoom.

const SLOP = 4; // pixels that a hand may shake in a click
const STEP = 60; // pixels of an arrow key
const ZOOM = 1.4; // of a button or key

const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// `act`: key(target) of what is pressed or null; click(point); movable; drag(key, point), drop(key); pan(dx, dy),
// zoom(factor, point), fit(); nudge(key, dx, dy), remove(key).
export function listen(svg, act) {
  const held = new Map(); // finger -> where it is
  let grip = null;
  const point = (event) => {
    const box = svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const at = point(event);
    held.set(event.pointerId, at);
    svg.setPointerCapture(event.pointerId);
    grip = held.size === 1 ? { key: act.key(event.target), from: at, last: at, moved: false } : { pinch: true };
  });
  svg.addEventListener("pointermove", (event) => {
    if (!held.has(event.pointerId)) return;
    const before = [...held.values()];
    const at = point(event);
    held.set(event.pointerId, at);
    if (grip.pinch) {
      if (held.size === 2) pinch(before, [...held.values()]);
      return;
    }
    grip.moved ||= Math.hypot(at[0] - grip.from[0], at[1] - grip.from[1]) > SLOP;
    if (!grip.moved) return;
    svg.classList.add("grabbed");
    if (grip.key !== null && act.movable) act.drag(grip.key, at);
    else act.pan(at[0] - grip.last[0], at[1] - grip.last[1]);
    grip.last = at;
  });
  const pinch = (before, now) => {
    const middle = ([one, other]) => [(one[0] + other[0]) / 2, (one[1] + other[1]) / 2];
    const length = ([one, other]) => Math.hypot(one[0] - other[0], one[1] - other[1]) || 1;
    const [from, to] = [middle(before), middle(now)];
    act.pan(to[0] - from[0], to[1] - from[1]);
    act.zoom(length(now) / length(before), to);
  };
  const release = (event) => {
    if (!held.delete(event.pointerId) || held.size) return;
    svg.classList.remove("grabbed");
    const { key, moved, pinch: pinched } = grip;
    grip = null;
    if (pinched) return;
    if (moved && key !== null && act.movable) act.drop(key);
    else if (!moved && key === null && event.type === "pointerup") act.click(point(event));
  };
  svg.addEventListener("pointerup", release);
  svg.addEventListener("pointercancel", release);
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const step = event.deltaY * (event.deltaMode ? 0.05 : event.ctrlKey ? 0.01 : 0.0016);
    act.zoom(Math.exp(-Math.max(-0.7, Math.min(0.7, step))), point(event));
  }, { passive: false });
  svg.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = act.key(event.target);
    const way = WAYS[event.key];
    if (way && key !== null && act.movable) act.nudge(key, ...way);
    else if (way) act.pan(-way[0] * STEP, -way[1] * STEP);
    else if (event.key === "+" || event.key === "=") act.zoom(ZOOM);
    else if (event.key === "-") act.zoom(1 / ZOOM);
    else if (event.key === "0") act.fit();
    else if ((event.key === "Delete" || event.key === "Backspace") && key !== null && act.movable) act.remove(key);
    else return;
    event.preventDefault();
  });
}

export const buttons = (act) => [["+", "zoom in", () => act.zoom(ZOOM)], ["−", "zoom out", () => act.zoom(1 / ZOOM)], ["⤢", "show all stops", () => act.fit()]];
