// Names beside dots so that none covers another: greedy, the most important first; who finds no room gets none.

const pen = document.createElement("canvas").getContext("2d");
const MOST = 150; // that are tried: a map with more names is not read

const apart = (one, other) => one[2] <= other[0] || other[2] <= one[0] || one[3] <= other[1] || other[3] <= one[1];

// `wanted`: {x, y, radius, text, rank}; `taken`: boxes [left, top, right, bottom] to keep clear of; gives those that
// have room, with `box`, `left` and `base` (where the letters begin).
export function placed(wanted, taken, [wide, high], size = 12) {
  pen.font = `${size}px system-ui, sans-serif`;
  const boxes = [...taken];
  const found = [];
  for (const one of [...wanted].sort((a, b) => b.rank - a.rank).slice(0, MOST)) {
    const [w, h] = [pen.measureText(one.text).width + 2, size + 2];
    const gap = one.radius + 3;
    const slant = one.radius * 0.7 + 2;
    const corners = [
      [gap, -h / 2], [-gap - w, -h / 2], [slant, -slant - h], [slant, slant], [-slant - w, -slant - h], [-slant - w, slant],
      [-w / 2, -gap - h], [-w / 2, gap],
    ];
    for (const [dx, dy] of corners) {
      const box = [one.x + dx, one.y + dy, one.x + dx + w, one.y + dy + h];
      if (box[0] < 2 || box[1] < 2 || box[2] > wide - 2 || box[3] > high - 2 || !boxes.every((other) => apart(box, other))) continue;
      boxes.push(box);
      found.push({ ...one, box, left: box[0] + 1, base: box[3] - 4 });
      break;
    }
  }
  return found;
}
