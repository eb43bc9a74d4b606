'use strict';
// The page is whole without this script: lists of writes, each with its object. The script
// draws lines of time and shows what differs between two writes that are chosen.
(() => {
  const objects = JSON.parse(document.getElementById('data').textContent);
  const sections = [...document.querySelectorAll('section.object')];
  const links = [...document.querySelectorAll('nav a')];
  const compare = document.getElementById('compare');
  const most = 4000000; // cells of the table that finds common lines
  let current = 0, from = 0, to = 0;

  const make = (name, cls, text) => {
    const e = document.createElement(name);
    if (cls) e.className = cls;
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const shape = (name, attributes, text) => {
    const e = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    if (text !== undefined) e.textContent = text;
    return e;
  };

  // common marks the lines that both texts have, in order, as pairs of indexes.
  function common(a, b) {
    const pairs = [];
    let start = 0, endA = a.length, endB = b.length;
    while (start < endA && start < endB && a[start] === b[start]) { pairs.push([start, start]); start++; }
    const tail = [];
    while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) tail.push([--endA, --endB]);
    const n = endA - start, m = endB - start;
    if (n > 0 && m > 0 && n * m <= most) {
      const width = m + 1, best = new Uint32Array((n + 1) * width);
      for (let i = n - 1; i >= 0; i--) {
        for (let j = m - 1; j >= 0; j--) {
          best[i * width + j] = a[start + i] === b[start + j]
            ? best[(i + 1) * width + j + 1] + 1
            : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
        }
      }
      for (let i = 0, j = 0; i < n && j < m;) {
        if (a[start + i] === b[start + j]) pairs.push([start + i++, start + j++]);
        else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i++;
        else j++;
      }
    }
    return pairs.concat(tail.reverse());
  }

  // lines are those of a diff: a sign and a text each.
  function lines(oldText, newText) {
    const split = (text) => text === '' ? [] : text.replace(/\n$/, '').split('\n');
    const a = split(oldText), b = split(newText), out = [];
    let i = 0, j = 0;
    for (const [x, y] of [...common(a, b), [a.length, b.length]]) {
      while (i < x) out.push(['-', a[i++]]);
      while (j < y) out.push(['+', b[j++]]);
      if (i < a.length) { out.push([' ', a[i]]); i++; j++; }
    }
    return out;
  }

  function showDiff() {
    const all = objects[current].revisions;
    const title = document.getElementById('compared'), body = document.getElementById('diff');
    const older = all[from], newer = all[to];
    title.textContent = from === to ? 'Revision ' + newer.revision : 'From revision ' + older.revision + ' to ' + newer.revision;
    body.replaceChildren();
    const out = from === to ? newer.text.replace(/\n$/, '').split('\n').map((l) => [' ', l]) : lines(older.text, newer.text);
    const near = new Set();
    out.forEach(([sign], at) => { if (sign !== ' ') for (let k = at - 3; k <= at + 3; k++) near.add(k); });
    if (from !== to && near.size === 0) { body.append(make('div', 'skip', 'Nothing differs.')); return; }
    let skipped = 0;
    const skip = () => { if (skipped) body.append(make('div', 'skip', skipped + ' equal lines')); skipped = 0; };
    out.forEach(([sign, text], at) => {
      if (from !== to && !near.has(at)) { skipped++; return; }
      skip();
      body.append(make('div', sign === '+' ? 'add' : sign === '-' ? 'del' : '', sign + ' ' + text));
    });
    skip();
  }

  // drawTime puts the writes of an object on a line, each at its time.
  function drawTime(section, all, index) {
    const svg = shape('svg', { class: 'time', viewBox: '0 0 1000 56', preserveAspectRatio: 'none', role: 'img', 'aria-label': 'line of time' });
    const times = all.map((r) => Date.parse(r.at));
    const first = Math.min(...times), span = Math.max(Math.max(...times) - first, 1);
    svg.append(shape('line', { x1: 10, y1: 20, x2: 990, y2: 20 }));
    all.forEach((r, n) => {
      const dot = shape('circle', { class: r.change, cx: 12 + 976 * (times[n] - first) / span, cy: 20, r: 6, 'data-n': n });
      dot.append(shape('title', {}, r.when + ' ' + r.change + ' ' + r.by));
      dot.addEventListener('click', () => choose(index, Math.min(n + 1, all.length - 1), n));
      svg.append(dot);
    });
    svg.append(shape('text', { x: 10, y: 48 }, all[all.length - 1].when), shape('text', { x: 990, y: 48, 'text-anchor': 'end' }, all[0].when));
    section.querySelector('.rows').before(svg);
  }

  function choose(object, older, newer) {
    const many = objects[object].revisions.length;
    current = object; from = Math.min(older, many - 1); to = Math.min(newer, many - 1);
    if (from < to) [from, to] = [to, from]; // the newest stands first
    sections.forEach((s, n) => s.classList.toggle('chosen', n === current));
    links.forEach((l, n) => l.classList.toggle('chosen', n === current));
    for (const box of sections[current].querySelectorAll('input')) box.checked = Number(box.value) === (box.dataset.side === 'from' ? from : to);
    for (const dot of sections[current].querySelectorAll('circle')) dot.classList.toggle('picked', [from, to].includes(Number(dot.dataset.n)));
    showDiff();
    history.replaceState(null, '', '#' + [current, from, to].join(','));
  }

  function fromAddress() {
    const asked = location.hash.slice(1).split(',').map(Number);
    const [o = 0, a = 1, b = 0] = asked.length === 3 && asked.every(Number.isInteger) ? asked : [];
    if (objects.length) choose(Math.max(Math.min(o, objects.length - 1), 0), Math.max(a, 0), Math.max(b, 0));
  }

  document.body.classList.add('scripted');
  sections.forEach((section, n) => {
    drawTime(section, objects[n].revisions, n);
    section.addEventListener('change', () => {
      const side = (name) => Number(section.querySelector('input[data-side=' + name + ']:checked').value);
      choose(n, side('from'), side('to'));
    });
  });
  links.forEach((link, n) => link.addEventListener('click', (event) => { event.preventDefault(); choose(n, 1, 0); }));
  document.getElementById('find').addEventListener('input', (event) => {
    links.forEach((link) => { link.hidden = !link.textContent.includes(event.target.value); });
  });
  window.addEventListener('hashchange', fromAddress);
  if (objects.length) compare.hidden = false;
  fromAddress();
})();
