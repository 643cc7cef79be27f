// What a place of a plot says: the nearest dots, or the values at an instant. Before printing everything is opened.
const tip = document.createElement('div'), cross = document.createElement('div');
tip.className = 'tip'; cross.className = 'cross'; tip.setAttribute('role', 'status');
const days = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const two = number => String(number).padStart(2, '0');
const spelled = seconds => {
  const at = new Date(seconds * 1000);
  return `${days[at.getUTCDay()]} ${at.toISOString().slice(0, 10)} ${two(at.getUTCHours())}:${two(at.getUTCMinutes())} UTC`;
};
function nearest(area, event) {
  const found = [];
  for (const dot of area.querySelectorAll('.dot')) {
    const box = dot.getBoundingClientRect();
    const far = Math.hypot(box.x + box.width / 2 - event.clientX, box.y + box.height / 2 - event.clientY);
    if (far < 30) found.push({ dot, far: dot.classList.contains('own') ? far - 6 : far });
  }
  found.sort((one, other) => one.far - other.far);
  const close = found.filter(one => one.far < found[0].far + 3).slice(0, 4);
  return close.length ? { lines: close.map(one => one.dot.dataset.says), x: parseFloat(close[0].dot.style.left) / 100 } : null;
}
function instant(area, share) {
  const data = area.told ??= JSON.parse(area.parentNode.querySelector('script').textContent);
  const last = data.count - 1, index = Math.max(0, Math.min(last, Math.round(share * last)));
  area.index = index;
  const lines = data.series.map(([name, values]) => `${name}: ${values[index] ?? '–'}`);
  return { lines: [spelled(data.begin + index * data.step), ...lines], x: last ? index / last : 0, cross: true };
}
function show(area, found) {
  if (!found) { hide(); return; }
  tip.replaceChildren(...found.lines.map(line => Object.assign(document.createElement('div'), { textContent: line })));
  area.append(tip);
  if (found.cross) { cross.style.left = `${100 * found.x}%`; area.append(cross); } else cross.remove();
  const room = area.clientWidth, at = found.x * room;
  tip.style.left = `${Math.max(-40, Math.min(at + 12, room - tip.offsetWidth))}px`;
  tip.style.bottom = 'calc(100% - 36px)';
}
function hide() { tip.remove(); cross.remove(); }
for (const area of document.querySelectorAll('.plot .area')) {
  const timed = area.parentNode.querySelector('script') !== null;
  const at = event => {
    const box = area.getBoundingClientRect();
    show(area, timed ? instant(area, (event.clientX - box.x) / box.width) : nearest(area, event));
  };
  area.addEventListener('pointermove', at);
  area.addEventListener('pointerdown', at);
  area.addEventListener('pointerleave', hide);
  area.addEventListener('blur', hide);
  area.addEventListener('keydown', event => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !timed) return;
    event.preventDefault();
    instant(area, 0.5);
    area.place = Math.max(0, Math.min(area.told.count - 1, (area.place ?? area.index) + step));
    show(area, instant(area, area.place / (area.told.count - 1)));
  });
}
addEventListener('beforeprint', () => { for (const one of document.querySelectorAll('details')) one.open = true; });
