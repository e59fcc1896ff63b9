// Where a place is on a map: the projection of its coordinates, and the part of the world that is in view.

const radians = Math.PI / 180;
export const EARTH = 40_075_016.686; // metres round the equator

// Both give [x, y] with y downwards. Places with latitude are drawn in Mercator's projection, as background tiles are,
// in which the world is one wide.
export const plane = { to: ([x, y]) => [x, -y], from: ([x, y]) => [x, -y] };
export const mercator = {
  to: ([lat, lon]) => {
    const inside = Math.min(85.05, Math.max(-85.05, lat));
    return [lon / 360 + 0.5, 0.5 - Math.asinh(Math.tan(inside * radians)) / (2 * Math.PI)];
  },
  from: ([x, y]) => [Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) / radians, (x - 0.5) * 360],
};

export class Viewport {
  constructor() {
    Object.assign(this, { size: [0, 0], centre: [0.5, -0.5], scale: 500 }); // scale: pixels for one of the world's
  }

  pixel([x, y]) {
    return [(x - this.centre[0]) * this.scale + this.size[0] / 2, (y - this.centre[1]) * this.scale + this.size[1] / 2];
  }

  world([px, py]) {
    return [(px - this.size[0] / 2) / this.scale + this.centre[0], (py - this.size[1] / 2) / this.scale + this.centre[1]];
  }

  // `least`: the smallest extent to show, so that one stop alone is not looked at through a microscope.
  fit(points, margin, least) {
    const low = [0, 1].map((axis) => points.reduce((best, point) => Math.min(best, point[axis]), Infinity));
    const high = [0, 1].map((axis) => points.reduce((best, point) => Math.max(best, point[axis]), -Infinity));
    this.centre = [0, 1].map((axis) => (low[axis] + high[axis]) / 2);
    const scales = [0, 1].map((axis) => Math.max(40, this.size[axis] - 2 * margin) / Math.max(high[axis] - low[axis], least));
    this.scale = Math.min(...scales);
    this.home = this.scale;
  }

  // The place under `at` stays where it is.
  zoom(factor, at = this.size.map((length) => length / 2)) {
    const under = this.world(at);
    this.scale = Math.min(Math.max(this.scale * factor, this.home / 40), this.home * 400);
    const now = this.pixel(under);
    this.pan(at[0] - now[0], at[1] - now[1]);
  }

  pan(dx, dy) {
    this.centre = [this.centre[0] - dx / this.scale, this.centre[1] - dy / this.scale];
  }
}
