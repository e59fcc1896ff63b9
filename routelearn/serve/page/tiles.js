// Background tiles, where the service names a source of them: squares of the Mercator map, as deep as the scale asks.

import { element } from "./dom.js";

const SIDE = 256;
const DEEPEST = 19;

export class Tiles {
  constructor(layer, template) {
    Object.assign(this, { layer, template, there: new Map() });
  }

  draw(view, globe) {
    const wanted = new Map();
    if (this.template && globe) {
      const depth = Math.min(DEEPEST, Math.max(0, Math.round(Math.log2(view.scale / SIDE))));
      const count = 2 ** depth;
      const [low, high] = [view.world([0, 0]), view.world(view.size)].map((corner) => corner.map((part) => Math.floor(part * count)));
      for (let y = Math.max(0, low[1]); y <= Math.min(count - 1, high[1]); y += 1) {
        for (let x = Math.max(0, low[0]); x <= Math.min(count - 1, high[0]); x += 1) wanted.set(`${depth}/${x}/${y}`, [depth, x, y]);
      }
    }
    for (const [key, image] of this.there) {
      if (wanted.has(key)) continue;
      image.remove();
      this.there.delete(key);
    }
    for (const [key, [z, x, y]] of wanted) {
      if (!this.there.has(key)) {
        const href = this.template.replace("{z}", z).replace("{x}", x).replace("{y}", y);
        this.there.set(key, this.layer.appendChild(element("image", { href, preserveAspectRatio: "none", "data-tile": key })));
      }
      const [left, top] = view.pixel([x / 2 ** z, y / 2 ** z]);
      const side = view.scale / 2 ** z + 0.5; // no seams
      for (const [name, value] of Object.entries({ x: left, y: top, width: side, height: side })) this.there.get(key).setAttribute(name, value);
    }
  }
}
