// SPDX-License-Identifier: Apache-2.0

// The web page of the index: three views, each with its own address.
//
//     /?q=WORDS&offset=N     search
//     /page?url=URL&at=T     everything that the index knows about a page, now or at an earlier time
//     /pipeline              the observers at work
//
// Content of indexed pages goes into the document as textContent and attributes, never as markup.

'use strict';

const main = document.getElementById('main');
const PAGE_SIZE = 10;
const SVG = 'http://www.w3.org/2000/svg';

// --- Making elements

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

const make = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
const draw = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

// --- Words for numbers

const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const decimal = new Intl.NumberFormat('en', {maximumFractionDigits: 2});

function count(number, noun) {
  return `${whole.format(number)} ${noun}${number === 1 ? '' : 's'}`;
}

function duration(micros) {
  if (micros < 1000) return `${Math.round(micros)} µs`;
  if (micros < 1e6) return `${decimal.format(Number((micros / 1e3).toPrecision(3)))} ms`;
  if (micros < 120e6) return `${decimal.format(Number((micros / 1e6).toPrecision(3)))} s`;
  return `${Math.round(micros / 60e6)} min`;
}

function bytes(number) {
  if (number < 1024) return `${number} B`;
  if (number < 1 << 20) return `${decimal.format(Number((number / 1024).toPrecision(3)))} KiB`;
  return `${decimal.format(Number((number / (1 << 20)).toPrecision(3)))} MiB`;
}

function rate(perSecond) {
  if (perSecond < 0.05) return '0/s';
  return `${perSecond < 10 ? perSecond.toFixed(1) : whole.format(perSecond)}/s`;
}

function moment(micros) {
  const date = new Date(micros / 1000);
  const seconds = (Date.now() - date.getTime()) / 1000;
  let text = date.toLocaleString();
  if (seconds < 5) text = 'just now';
  else if (seconds < 90) text = `${Math.round(seconds)} s ago`;
  else if (seconds < 5400) text = `${Math.round(seconds / 60)} min ago`;
  else if (seconds < 129600) text = `${Math.round(seconds / 3600)} h ago`;
  return make('time', {datetime: date.toISOString(), title: date.toLocaleString()}, text);
}

// --- Asking the server

async function ask(path, parameters, signal) {
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries(parameters || {})) {
    if (value !== null && value !== undefined && value !== '') url.searchParams.set(name, value);
  }
  const response = await fetch(url, {signal});
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error || `error ${response.status}`);
  return answer;
}

const pageAddress = (url, at) => '/page?' + new URLSearchParams(at ? {url, at} : {url});
const fileAddress = (url) => '/files/' + url.split('/').map(encodeURIComponent).join('/');
const pageLink = (url, text) => make('a', {href: pageAddress(url)}, text || url);

function showProblem(error) {
  if (error.name === 'AbortError') return;
  main.replaceChildren(make('div', {class: 'card'}, make('h1', {}, 'Error'), make('p', {}, error.message)));
}

// --- Views: each has a begin function that returns a function to refresh the view, called about once a second.

let refresh = async () => {};
let view = 0;  // a counter, so that answers for an earlier view are dropped

function go(address, replace) {
  if (replace) history.replaceState(null, '', address);
  else history.pushState(null, '', address);
  if (!replace) show();
}

function show() {
  const name = {'/page': 'page', '/pipeline': 'pipeline'}[location.pathname] || 'search';
  view += 1;
  main.className = name;
  for (const link of document.querySelectorAll('nav a')) {
    if (link.dataset.view === name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  refresh = {search: beginSearch, page: beginPage, pipeline: beginPipeline}[name]();
  window.scrollTo(0, 0);
}

document.addEventListener('click', (event) => {
  const link = event.target.closest('a');
  if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || link.target) return;
  if (link.origin !== location.origin || !['/', '/page', '/pipeline'].includes(link.pathname) || link.hash) return;
  event.preventDefault();
  go(link.href);
});
window.addEventListener('popstate', show);

// --- Search

function beginSearch() {
  const parameters = new URLSearchParams(location.search);
  const results = make('div', {});
  const welcome = make('div', {class: 'welcome'}, make('h1', {}, 'Search the pages'),
      make('div', {class: 'soft', id: 'welcome-count'}, ' '));
  const input = make('input', {type: 'search', name: 'q', value: parameters.get('q') || '', placeholder: 'Words…',
    autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', maxlength: 500, 'aria-label': 'Search for'});
  const hint = make('p', {class: 'hint small soft'}, make('kbd', {}, '/'), ' for the search box, ', make('kbd', {}, '↓'), ' ',
      make('kbd', {}, '↑'), ' to move through the results, ', make('kbd', {}, 'Enter'), ' to open a result');
  const form = make('form', {class: 'box', role: 'search', action: '/', method: 'get'}, input, make('button', {}, 'Search'));
  main.replaceChildren(welcome, form, results, hint);

  const mine = view;
  let offset = Number(parameters.get('offset')) || 0;
  let shown = '';
  let asking = null;

  async function look(changed) {
    const query = input.value.trim();
    welcome.hidden = query !== '';
    hint.hidden = query !== '';
    document.title = query ? `${query} – Web index` : 'Web index';
    if (!query) {
      shown = '';
      results.replaceChildren();
      return;
    }
    if (asking && !changed) return;
    if (asking) asking.abort();
    const controller = new AbortController();
    asking = controller;
    try {
      const answer = await ask('/api/search', {q: query, offset, limit: PAGE_SIZE}, controller.signal);
      if (mine !== view) return;
      const essence = JSON.stringify([answer.query, answer.offset, answer.total, answer.hits]);
      if (essence !== shown) {
        shown = essence;
        showResults(results, answer, (to) => {
          offset = to;
          remember(false);
          look(true);
          window.scrollTo(0, 0);
        });
      }
    } catch (error) {
      if (error.name === 'AbortError' || mine !== view) return;
      shown = '';
      results.replaceChildren(make('p', {class: 'meta bad'}, error.message));
    } finally {
      if (asking === controller) asking = null;
    }
  }

  function remember(replace) {
    const query = input.value.trim();
    const next = new URLSearchParams(query ? {q: query} : {});
    if (query && offset > 0) next.set('offset', offset);
    const address = '/' + (next.size === 0 ? '' : `?${next}`);
    if (address === location.pathname + location.search) return;
    if (replace) history.replaceState(null, '', address);
    else history.pushState(null, '', address);
  }

  let typing = 0;
  input.addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      if (mine !== view) return;
      offset = 0;
      remember(true);
      look(true);
    }, 120);
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    clearTimeout(typing);
    offset = 0;
    remember(true);
    look(true);
  });
  input.focus();
  input.setSelectionRange(input.value.length, input.value.length);
  look(true);
  return () => look(false);
}

function showResults(results, answer, turn) {
  const what = answer.total === answer.matches ? '' : `, ${whole.format(answer.matches - answer.total)} similar pages folded`;
  const meta = make('p', {class: 'meta'},
      `${count(answer.matches, 'page')}${answer.total > 0 && !answer.all_terms ? ' with some of the words' : ''}` +
      ` of ${whole.format(answer.documents)}${what} · ${duration(answer.took_micros)}`);
  const list = make('ol', {class: 'hits', start: answer.offset + 1}, answer.hits.map(hitItem));
  const last = answer.offset + answer.hits.length;
  const pages = answer.total > PAGE_SIZE && make('div', {class: 'pages'},
      make('button', {class: 'plain', disabled: answer.offset === 0,
        onclick: () => turn(Math.max(0, answer.offset - PAGE_SIZE))}, 'Previous'),
      make('span', {class: 'small soft'}, `${answer.offset + 1}–${last} of ${whole.format(answer.total)}`),
      make('button', {class: 'plain', disabled: last >= answer.total,
        onclick: () => turn(answer.offset + PAGE_SIZE)}, 'Next'));
  const focused = document.activeElement && document.activeElement.closest && document.activeElement.closest('ol.hits a');
  const href = focused && focused.getAttribute('href');
  results.replaceChildren(...[meta, list, pages].filter(Boolean));
  if (href) {
    for (const link of list.querySelectorAll('a')) if (link.getAttribute('href') === href) { link.focus(); break; }
  }
}

function hitItem(hit) {
  const folded = (label, urls) => urls.length > 0 && make('details', {}, make('summary', {}, label),
      make('ul', {}, urls.map((url) => make('li', {}, pageLink(url)))));
  return make('li', {},
      make('a', {class: 'hit-title', href: pageAddress(hit.url)}, hit.title || hit.url),
      make('div', {class: 'hit-url'}, make('span', {}, hit.url),
          make('span', {title: 'How well the text matches, times a factor that grows with the rank'}, `score ${hit.score.toFixed(2)}`),
          make('span', {title: 'PageRank; a page without incoming links has 0.15'}, `rank ${hit.rank.toFixed(2)}`)),
      make('p', {class: 'snippet'}, hit.snippet.map((piece) => piece.marked ? make('mark', {}, piece.text) : piece.text)),
      folded(count(hit.duplicates.length, 'duplicate'), hit.duplicates),
      folded(`${count(hit.similar.length, 'similar page')}`, hit.similar));
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const input = document.querySelector('form.box input');
  const active = document.activeElement;
  if (event.key === '/' && !(active && active.tagName === 'INPUT')) {
    event.preventDefault();
    if (input) { input.focus(); input.select(); } else go('/');
    return;
  }
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
  const links = [...document.querySelectorAll('a.hit-title')];
  const at = links.indexOf(active);
  if (!input || links.length === 0 || (at < 0 && active !== input)) return;
  event.preventDefault();
  const next = at + (event.key === 'ArrowDown' ? 1 : -1);
  if (next < 0) input.focus();
  else if (next < links.length) { links[next].focus(); links[next].scrollIntoView({block: 'nearest'}); }
});

// --- A page

function beginPage() {
  const parameters = new URLSearchParams(location.search);
  const url = parameters.get('url') || '';
  const at = parameters.get('at');
  const mine = view;
  let shown = '';
  document.title = `${url} – Web index`;
  main.replaceChildren(make('p', {class: 'soft'}, 'Loading…'));

  async function look() {
    try {
      const page = await ask('/api/page', {url, at});
      if (mine !== view) return;
      const essence = JSON.stringify(page);
      if (essence === shown) return;
      shown = essence;
      showPage(page, at);
    } catch (error) {
      if (mine !== view) return;
      shown = '';
      if (at) showGone(url, error);
      else showProblem(error);
    }
  }
  look();
  return look;
}

function showGone(url, error) {
  main.replaceChildren(make('div', {class: 'card'}, make('h1', {}, url), make('p', {}, error.message),
      pageLink(url, 'Current version of the page')));
}

function showPage(page, at) {
  document.title = `${page.title || page.url} – Web index`;
  const scrolled = [...main.querySelectorAll('[data-scroll]')].map((node) => [node.dataset.scroll, node.scrollTop]);
  main.replaceChildren(pageHead(page), make('div', {class: 'grid'}, factsCard(page), summaryCard(page),
      linksCard('Incoming links', page.links_in, 'No page links here.', 'in'),
      linksCard('Outgoing links', page.links_out, 'This page has no links.', 'out'), textCard(page, at)));
  for (const [name, top] of scrolled) {
    const node = main.querySelector(`[data-scroll="${name}"]`);
    if (node) node.scrollTop = top;
  }
}

function pageHead(page) {
  const canonical = page.cluster && page.cluster.canonical;
  return make('div', {class: 'page-head'},
      make('div', {}, make('h1', {}, page.title || page.url,
          !page.exists && make('span', {class: 'badge warn'}, 'does not exist'),
          canonical === page.url && page.cluster.members.length > 1 && make('span', {class: 'badge'}, 'canonical')),
      make('code', {class: 'soft'}, page.url)),
      page.exists && make('a', {class: 'button', href: fileAddress(page.url), target: '_blank', rel: 'noopener noreferrer'},
          'Original'));
}

function factsCard(page) {
  const facts = make('dl', {class: 'facts'});
  const fact = (name, ...values) => facts.append(make('dt', {}, name), make('dd', {}, ...values));
  fact('Rank', decimal.format(page.rank));
  if (page.exists) fact('Loaded', moment(page.loaded_micros), `, ${bytes(page.bytes)}`);
  if (page.moved_to) fact('Moved to', pageLink(page.moved_to));
  if (page.cluster) {
    fact('Cluster', make('code', {}, page.cluster.key));
    if (page.cluster.canonical) fact('Canonical', pageLink(page.cluster.canonical));
    const others = page.cluster.members.filter((url) => url !== page.url);
    if (others.length > 0) {
      fact(count(others.length, 'duplicate'), make('ul', {class: 'links', 'data-scroll': 'members'},
          others.map((url) => make('li', {}, pageLink(url)))));
    }
  }
  if (page.notes.length > 0) fact('Notes', page.notes.join('; '));
  return make('section', {class: 'card'}, make('h2', {}, 'Page'), facts);
}

function summaryCard(page) {
  const summary = page.summary;
  const missing = summary.missing > 0 ? `, ${whole.format(summary.missing)} of them missing` : '';
  return make('section', {class: 'card'}, make('h2', {}, 'Summary'),
      make('p', {}, summary.description || page.description || make('span', {class: 'soft'}, 'Not computed yet.')),
      summary.included.map((text) => make('p', {class: 'small soft'}, text)),
      page.resources.length > 0 && make('details', {},
          make('summary', {}, `Rendered with ${count(page.resources.length, 'file')}${missing}, ${bytes(summary.bytes)}`),
          make('ul', {}, page.resources.map((path) => make('li', {}, make('code', {}, path))))));
}

function linksCard(title, part, none, name) {
  const total = part.more ? (part.count ? `${whole.format(part.count)}, the first ${part.links.length} shown` :
      `the first ${part.links.length} of more`) : whole.format(part.links.length);
  return make('section', {class: 'card'}, make('h2', {}, `${title} (${total})`),
      part.links.length === 0 ? make('p', {class: 'soft'}, none) :
      make('ul', {class: 'links', tabindex: 0, 'data-scroll': name}, part.links.map((link) =>
          make('li', {}, pageLink(link.url), link.anchor && make('div', {class: 'anchor'}, link.anchor)))));
}

function textCard(page, at) {
  const latest = page.history.length > 0 ? page.history[0].timestamp : null;
  const buttons = page.history.map((version, index) => make('button', {
    class: (at || latest) === version.timestamp ? '' : 'plain',
    'aria-pressed': (at || latest) === version.timestamp,
    onclick: () => go(pageAddress(page.url, index === 0 ? null : version.timestamp)),
  }, `${bytes(version.bytes)}, `, moment(version.loaded_micros)));
  const old = page.version;
  const text = old ? (old.exists ? old.text : 'The page did not exist at this time.') : page.text;
  return make('section', {class: 'card wide'},
      make('h2', {}, page.history.length > 1 ? `Text, in ${count(page.history.length, 'version')}` : 'Text'),
      page.history.length > 0 && make('div', {class: 'versions'}, buttons),
      old && old.title && old.title !== page.title && make('p', {}, make('strong', {}, old.title)),
      make('p', {class: 'text', tabindex: 0, 'data-scroll': 'text'}, text || make('span', {class: 'soft'}, 'No text.')),
      !old && page.text_bytes > text.length * 4 && make('p', {class: 'small soft'}, 'Only the beginning of the text is shown.'));
}

// --- The pipeline

const OUTSIDE = [
  {name: 'load', stage: 0, lane: 1, does: 'transactions that load files of the folder'},
  {name: 'search', stage: 8, lane: 1, does: 'the serving side, which answers the searches of this page'},
];
const NODE = {width: 120, height: 38, across: 146, down: 62, left: 8, top: 14};

function beginPipeline() {
  document.title = 'Pipeline – Web index';
  const mine = view;
  const parts = {};
  for (const name of ['tiles', 'graph', 'charts', 'quarantine', 'observers']) parts[name] = make('div', {});
  const description = make('pre', {});
  main.replaceChildren(parts.tiles,
      make('section', {class: 'card pipeline-part'}, make('h2', {}, 'Observers'),
          make('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Graph of the observers'}, parts.graph)),
      parts.charts, parts.quarantine,
      make('section', {class: 'card pipeline-part'}, make('h2', {}, 'Metrics of each observer'),
          make('div', {class: 'scroll', tabindex: 0}, parts.observers),
          make('details', {}, make('summary', {}, 'Which observers change which columns, as seen by this process'), description)));

  async function look() {
    try {
      const [answer, status] = await Promise.all([ask('/api/pipeline'), ask('/api/status')]);
      if (mine !== view) return;
      parts.tiles.replaceChildren(tiles(answer, status));
      parts.graph.replaceChildren(graph(answer));
      parts.charts.replaceChildren(charts(answer));
      parts.quarantine.replaceChildren(...[quarantineCard(answer.quarantine)].filter(Boolean));
      parts.observers.replaceChildren(observersTable(answer.observers));
      description.textContent = answer.description;
    } catch (error) {
      if (mine === view && main.querySelector('.tile') === null) parts.tiles.replaceChildren(make('p', {}, error.message));
    }
  }
  look();
  return look;
}

function median(numbers) {
  if (numbers.length === 0) return null;
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

function tiles(answer, status) {
  const last = answer.history[answer.history.length - 1] || {commits_per_second: 0, conflicts_per_second: 0};
  const latest = median(answer.latencies.slice(-9).map((entry) => entry[1]));
  const backlog = answer.backlog;
  const tile = (label, value, title, bad) => make('div', {class: 'card tile', title},
      make('div', {class: bad ? 'value bad' : 'value'}, value), make('div', {class: 'label'}, label));
  return make('div', {class: 'tiles'},
      tile('documents', whole.format(status.documents)),
      tile('until searchable', latest === null ? '–' : duration(latest), 'Time from loading a file until its document is searchable: median of the last nine'),
      tile('pending notifications', (backlog.cells >= backlog.max_cells ? '≥ ' : '') + whole.format(backlog.cells)),
      tile('oldest pending', backlog.cells === 0 ? '–' : duration(backlog.oldest_micros)),
      tile('commits', rate(last.commits_per_second)),
      tile('conflicts', rate(last.conflicts_per_second),
          `${whole.format(answer.cluster.conflicts)} since the start; conflicting transactions are retried`),
      tile('in quarantine', whole.format(answer.quarantine.count), 'Notifications whose observer kept failing',
          answer.quarantine.count > 0));
}

function place(node) {
  return {x: NODE.left + node.stage * NODE.across, y: NODE.top + node.lane * NODE.down};
}

function edgePath(from, to) {
  const a = place(from);
  const b = place(to);
  const middle = NODE.height / 2;
  if (b.x > a.x) {
    const x1 = a.x + NODE.width;
    const bend = Math.min(60, (b.x - x1) / 2 + 12);
    return `M${x1},${a.y + middle} C${x1 + bend},${a.y + middle} ${b.x - bend},${b.y + middle} ${b.x - 5},${b.y + middle}`;
  }
  if (a.x === b.x) {  // in the same column: around the others
    const x = a.x + NODE.width;
    return `M${x},${a.y + middle} C${x + 30},${a.y + middle} ${x + 30},${b.y + middle} ${x + 5},${b.y + middle}`;
  }
  const x1 = a.x + NODE.width / 2 - 14;  // back, below both
  const x2 = b.x + NODE.width / 2 + 14;
  const low = Math.max(a.y, b.y) + NODE.height;
  if (a.y > b.y) {
    return `M${x1},${a.y} C${x1},${a.y - 24} ${x2},${b.y + NODE.height + 34} ${x2},${b.y + NODE.height + 5}`;
  }
  return `M${x1},${a.y + NODE.height} C${x1},${low + 18} ${x2},${low + 18} ${x2},${b.y + NODE.height + 5}`;
}

function graph(answer) {
  const nodes = new Map(OUTSIDE.map((node) => [node.name, {...node, outside: true}]));
  let unknown = 0;
  for (const observer of answer.observers) {
    const known = observer.stage > 0;
    nodes.set(observer.name, {...observer, stage: known ? observer.stage : 1 + unknown, lane: known ? observer.lane : 6});
    if (!known) unknown += 1;
  }
  const edges = answer.edges.concat([{from: 'deliver-exports', to: 'search', seen: true}])
      .filter((edge) => nodes.has(edge.from) && nodes.has(edge.to) && edge.from !== edge.to);
  const isActive = (name) => (nodes.get(name).per_second || 0) >= 0.05;
  const lanes = Math.max(...[...nodes.values()].map((node) => node.lane)) + 1;
  const width = NODE.left * 2 + 8 * NODE.across + NODE.width;
  const height = NODE.top * 2 + (lanes - 1) * NODE.down + NODE.height;
  const head = (id, extra) => draw('marker', {id, viewBox: '0 0 8 8', refX: 4, refY: 4, markerWidth: 8, markerHeight: 8,
    markerUnits: 'userSpaceOnUse', orient: 'auto'}, draw('path', {d: 'M0,0 L8,4 L0,8 z', class: `head ${extra}`}));
  const picture = draw('svg', {class: 'graph', viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': 'The observers and what triggers each; the table below has the numbers'},
  draw('defs', {}, head('head', ''), head('head-active', 'active')));
  for (const edge of edges) {
    const active = edge.seen && (edge.to === 'search' ? isActive(edge.from) : isActive(edge.to)) &&
        (nodes.get(edge.from).outside || isActive(edge.from));
    picture.append(draw('path', {class: `edge ${edge.seen ? '' : 'unseen'} ${active ? 'active' : ''}`,
      d: edgePath(nodes.get(edge.from), nodes.get(edge.to)), 'marker-end': active ? 'url(#head-active)' : 'url(#head)'}));
  }
  for (const node of nodes.values()) picture.append(graphNode(node));
  return picture;
}

function graphNode(node) {
  const {x, y} = place(node);
  const active = (node.per_second || 0) >= 0.05;
  const kind = node.outside ? 'outside' : node.quarantined > 0 ? 'trouble' : active ? 'active' : '';
  const below = node.outside ? '' : active || node.pending === 0 ? rate(node.per_second) : '';
  const waiting = node.pending > 0 ? `${whole.format(node.pending)} pending` : '';
  return draw('g', {class: `node ${kind}`, transform: `translate(${x},${y})`},
      draw('title', {}, node.outside ? node.does : `${node.name}: ${node.does}\nobserves ${node.observes}`),
      draw('rect', {width: NODE.width, height: NODE.height, rx: 8}),
      draw('text', {x: NODE.width / 2, y: node.outside ? 23 : 16, 'text-anchor': 'middle', 'font-weight': 600,
        'font-size': node.name.length > 15 ? 10.5 : 12}, node.name),
      draw('text', {x: NODE.width / 2, y: 30, 'text-anchor': 'middle', 'font-size': 10.5, class: 'soft-text'},
          [below, waiting].filter(Boolean).join(' · ')));
}

const CHART = {width: 520, height: 190, left: 46, right: 46, top: 10, bottom: 22};
const SPAN = 180e6;  // microseconds

function chartFrame(label, now) {
  const svg = draw('svg', {class: 'chart', viewBox: `0 0 ${CHART.width} ${CHART.height}`, role: 'img', 'aria-label': label});
  const right = CHART.width - CHART.right;
  const x = (at) => CHART.left + (at - (now - SPAN)) / SPAN * (right - CHART.left);
  for (const minutes of [3, 2, 1, 0]) {
    svg.append(draw('text', {x: x(now - minutes * 60e6), y: CHART.height - 5, 'font-size': 10.5, 'text-anchor': 'middle',
      class: 'soft-text'}, minutes === 0 ? 'now' : `−${minutes} min`));
  }
  return {svg, x};
}

function gridLine(svg, y, left, right) {
  svg.append(draw('line', {x1: CHART.left, x2: CHART.width - CHART.right, y1: y, y2: y, class: 'grid-line'}),
      draw('text', {x: CHART.left - 6, y: y + 3.5, 'text-anchor': 'end', 'font-size': 10.5, class: 'soft-text'}, left));
  if (right) {
    svg.append(draw('text', {x: CHART.width - CHART.right + 6, y: y + 3.5, 'font-size': 10.5, class: 'soft-text'}, right));
  }
}

function latencyChart(answer) {
  const {svg, x} = chartFrame('Time from loading a file until it is searchable', answer.now_micros);
  const bottom = CHART.height - CHART.bottom;
  const y = (micros) => bottom - (Math.log10(Math.min(1e8, Math.max(1e3, micros))) - 3) / 5 * (bottom - CHART.top);
  for (const [micros, name] of [[1e3, '1 ms'], [1e4, '10 ms'], [1e5, '0.1 s'], [1e6, '1 s'], [1e7, '10 s'], [1e8, '100 s']]) {
    gridLine(svg, y(micros), name);
  }
  for (const [at, micros] of answer.latencies) {
    if (at < answer.now_micros - SPAN) continue;
    svg.append(draw('circle', {class: 'dot', cx: Math.min(x(at), CHART.width - CHART.right), cy: y(micros), r: 3},
        draw('title', {}, duration(micros))));
  }
  return svg;
}

function niceMaximum(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value) || 10;
}

function workChart(answer) {
  const {svg, x} = chartFrame('Commits per second, and pending notifications', answer.now_micros);
  const bottom = CHART.height - CHART.bottom;
  const points = answer.history.filter((point) => point.at_micros >= answer.now_micros - SPAN);
  const commits = niceMaximum(Math.max(10, ...points.map((point) => point.commits_per_second)));
  const backlog = niceMaximum(Math.max(10, ...points.map((point) => point.backlog)));
  for (const part of [0, 0.5, 1]) {
    gridLine(svg, bottom - part * (bottom - CHART.top), whole.format(part * commits), whole.format(part * backlog));
  }
  const line = (value, maximum, extra) => svg.append(draw('polyline', {class: `line ${extra}`, points: points.map((point) =>
    `${x(point.at_micros).toFixed(1)},${(bottom - value(point) / maximum * (bottom - CHART.top)).toFixed(1)}`).join(' ')}));
  line((point) => point.backlog, backlog, 'second');
  line((point) => point.commits_per_second, commits, '');
  return svg;
}

function charts(answer) {
  return make('div', {class: 'grid pipeline-part'},
      make('section', {class: 'card'}, make('h2', {}, 'From load to searchable'), latencyChart(answer),
          make('div', {class: 'legend'}, make('span', {}, 'one changed document'))),
      make('section', {class: 'card'}, make('h2', {}, 'Work'), workChart(answer),
          make('div', {class: 'legend'}, make('span', {}, 'commits per second (left)'),
              make('span', {class: 'second'}, 'pending notifications (right)'))));
}

function quarantineCard(quarantine) {
  if (quarantine.count === 0) return null;
  return make('section', {class: 'card pipeline-part'}, make('h2', {}, `In quarantine (${whole.format(quarantine.count)})`),
      make('table', {}, make('thead', {}, make('tr', {}, ['Observer', 'Cell', 'Attempts', 'Error'].map((name) =>
        make('th', {}, name)))),
      make('tbody', {}, quarantine.entries.map((entry) => make('tr', {}, make('td', {}, entry.observer),
          make('td', {}, make('code', {}, `${entry.table} ${entry.row} ${entry.column}`)),
          make('td', {class: 'number'}, entry.attempts), make('td', {class: 'bad'}, entry.error))))));
}

function observersTable(observers) {
  const columns = [
    ['Rate', (o) => rate(o.per_second)], ['Commits', (o) => whole.format(o.commits)],
    ['Conflicts', (o) => whole.format(o.conflicts)], ['Failures', (o) => whole.format(o.failures)],
    ['Pending', (o) => whole.format(o.pending)], ['Median', (o) => o.commits > 0 ? duration(o.p50_micros) : '–'],
    ['99 %', (o) => o.commits > 0 ? duration(o.p99_micros) : '–'],
  ];
  return make('table', {},
      make('thead', {}, make('tr', {}, make('th', {}, 'Observer'), make('th', {}, 'Observes'),
          columns.map(([name]) => make('th', {class: 'number'}, name)))),
      make('tbody', {}, observers.map((observer) => make('tr', {title: observer.does},
          make('td', {}, observer.name), make('td', {}, make('code', {}, observer.observes)),
          columns.map(([, text]) => make('td', {class: 'number'}, text(observer)))))));
}

// --- The status of the index, in every view

async function showStatus() {
  const pill = document.getElementById('status');
  const bar = document.getElementById('progress');
  try {
    const status = await ask('/api/status');
    const loading = status.phase === 'loading';
    const ready = status.phase === 'ready';
    const part = status.expected > 0 ? (loading ? status.done : status.documents) / status.expected : 0;
    const waiting = status.backlog > 0 ? `, ${whole.format(status.backlog)} pending` : '';
    pill.className = `pill ${ready && !waiting ? '' : 'busy'}`;
    pill.textContent = loading && status.expected > 0 ?
        `loading ${whole.format(status.done)} of ${whole.format(status.expected)} files` :
        ready ? `${count(status.documents, 'document')}${waiting}` : `indexing, ${count(status.documents, 'document')}${waiting}`;
    bar.hidden = ready;
    document.getElementById('progress-bar').style.width = `${Math.round(Math.min(1, part) * 100)}%`;
    const welcome = document.getElementById('welcome-count');
    if (welcome) welcome.textContent = `${count(status.documents, 'document')} from ${status.folder}`;
  } catch (error) {
    pill.className = 'pill lost';
    pill.textContent = 'the server does not answer';
  }
}

async function tick() {
  if (!document.hidden) await Promise.allSettled([showStatus(), refresh()]);
  setTimeout(tick, 1000);
}

show();
tick();
