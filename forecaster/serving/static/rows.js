// A list of any length: only the rows that are seen are in the document, and they are used again while scrolling.

const SPARE = 6;

export class Rows {
  /** `make()` gives an element, `fill(element, item)` puts an item into it, `seen(items)` hears of those on the screen. */
  constructor(host, make, fill, seen = () => {}) {
    Object.assign(this, { host, make, fill, seen, items: [], pool: new Map(), first: 0, last: -1 });
    this.draw = this.draw.bind(this);
    this.later = () => { this.waiting ||= requestAnimationFrame(() => { this.waiting = 0; this.draw(); }); };
    addEventListener("scroll", this.later, { passive: true });
    this.watch = new ResizeObserver(() => { if (host.clientWidth !== this.width) this.reset(); });
    this.watch.observe(host);
  }

  close() {
    removeEventListener("scroll", this.later);
    this.watch.disconnect();
  }

  /** Shows other items, from the same place on; a row that has the focus keeps it. */
  set(items) {
    this.items = items;
    this.measure();
    for (const [place, one] of this.pool) if (place >= items.length) { this.pool.delete(place); one.remove(); }
    this.refill();
    this.draw();
  }

  measure() {
    this.width = this.host.clientWidth;
    this.height = parseFloat(getComputedStyle(this.host).getPropertyValue("--row")) || 56;
    this.host.style.height = `${this.items.length * this.height}px`;
  }

  reset() {
    this.measure();
    for (const one of this.pool.values()) one.remove();
    this.pool.clear();
    this.draw();
  }

  draw(all = false) {
    const top = this.host.getBoundingClientRect().top;
    const from = Math.max(0, Math.floor(-top / this.height) - SPARE);
    const to = Math.min(this.items.length, Math.ceil((innerHeight - top) / this.height) + SPARE);
    [this.first, this.last] = all ? [0, Math.min(this.items.length, 500)] : [from, Math.max(to, from)];
    const free = [];
    for (const [place, one] of this.pool) {
      if (place < this.first || place >= this.last) { this.pool.delete(place); free.push(one); }
    }
    for (let place = this.first; place < this.last; place += 1) {
      if (this.pool.has(place)) continue;
      const one = free.pop() ?? this.host.appendChild(this.make());
      one.style.transform = `translateY(${place * this.height}px)`;
      this.pool.set(place, one);
      this.fill(one, this.items[place]);
    }
    for (const one of free) one.remove();
    this.seen(this.items.slice(this.first, this.last));
  }

  /** Fills those on the screen again, e.g. when more is known of them. */
  refill() {
    for (const [place, one] of this.pool) this.fill(one, this.items[place]);
  }

  /** Moves the focus up or down by so many rows. */
  move(by) {
    const places = [...this.pool.entries()];
    const now = places.find(([, one]) => one === document.activeElement)?.[0];
    const next = now === undefined ? Math.max(0, Math.ceil(-this.host.getBoundingClientRect().top / this.height)) : now + by;
    if (next < 0 || next >= this.items.length) return;
    this.pool.get(next)?.focus({ preventScroll: true });
    this.pool.get(next)?.scrollIntoView({ block: "nearest" });
  }
}
