// Progressive enhancement of the dashboard: every page works without this file.
// It follows the daemon's events and fetches the page again when there is something
// new, replacing only the parts that changed, so that focus, scrolling and open
// details stay.
(function () {
  'use strict';

  var live = document.getElementById('live');
  var word = document.getElementById('live-word');
  var busy = false, again = false, gone = false;
  var timer = 0;
  var was = {}; // by id, what the daemon last sent of a part

  function say(state, text) {
    if (!live) { return; }
    live.dataset.state = state;
    if (word.textContent !== text) { word.textContent = text; } // it is read out whenever it is set
  }

  // Parts of a page that are replaced by themselves have an id and data-live.
  function swap(fresh) {
    var parts = document.querySelectorAll('[data-live]');
    for (var i = 0; i < parts.length; i++) {
      var here = parts[i];
      var there = fresh.getElementById(here.id);
      if (!there || there.innerHTML === was[here.id]) { continue; }
      was[here.id] = there.innerHTML;
      var focus = here.contains(document.activeElement) ? key(document.activeElement) : '';
      var open = [];
      here.querySelectorAll('details[open]').forEach(function (d) { open.push(d.id); });
      var scrolls = [];
      here.querySelectorAll('.scroll').forEach(function (s) { scrolls.push(s.scrollLeft); });
      here.replaceChildren.apply(here, Array.from(document.importNode(there, true).childNodes));
      open.forEach(function (id) {
        var d = id && document.getElementById(id);
        if (d) { d.open = true; }
      });
      here.querySelectorAll('.scroll').forEach(function (s, k) { if (scrolls[k]) { s.scrollLeft = scrolls[k]; } });
      if (focus) {
        var next = Array.from(here.querySelectorAll('a[href],summary,button,input,select')).find(function (e) { return key(e) === focus; });
        if (next) { next.focus({ preventScroll: true }); }
      }
    }
    document.documentElement.dataset.version = fresh.documentElement.dataset.version;
  }

  function key(e) { return e.tagName + ' ' + (e.getAttribute('href') || e.id || e.name || e.textContent.trim()); }

  function refresh() {
    if (busy) { again = true; return; }
    busy = true;
    fetch(location.href, { headers: { Accept: 'text/html' }, credentials: 'same-origin', cache: 'no-store' })
      .then(function (r) {
        // The session is over; or the replica is gone that ran what is followed here.
        if (r.status === 401 || (r.status === 410 && document.querySelector('[data-poll]'))) { location.reload(); }
        gone = r.status === 404 || r.status === 403;
        if (!r.ok) { throw new Error(String(r.status)); }
        return r.text();
      })
      .then(function (text) {
        swap(new DOMParser().parseFromString(text, 'text/html'));
        say('on', 'Live');
        poll();
      })
      .catch(function () { say('off', gone ? 'No longer shown' : 'Not reached; trying again'); poll(); })
      .finally(function () {
        busy = false;
        if (again) { again = false; refresh(); }
      });
  }

  // What is under way, and no round, is asked for again by itself.
  function poll() {
    var e = document.querySelector('[data-poll]');
    clearTimeout(timer);
    if (e) { timer = setTimeout(refresh, Number(e.dataset.poll)); }
  }
  poll();

  document.querySelectorAll('[data-live]').forEach(function (e) { was[e.id] = e.innerHTML; });

  if (live && window.EventSource && document.documentElement.dataset.version) { // a page that says what went wrong follows nothing
    var source = new EventSource(live.dataset.events);
    source.addEventListener('version', function (e) {
      say('on', 'Live');
      if (e.data !== document.documentElement.dataset.version) { refresh(); }
    });
    source.onerror = function () { say('off', 'Not reached; trying again'); };
    addEventListener('pagehide', function () { source.close(); });
    addEventListener('pageshow', function (e) { if (e.persisted) { location.reload(); } });
    // Ages and costs go on though nothing happens.
    setInterval(function () { if (!document.hidden) { refresh(); } }, 60000);
  } else {
    say('off', 'Reload to update');
  }

  // A choice in a filter takes effect at once; the button stays for those without script.
  document.querySelectorAll('form[data-auto] select').forEach(function (s) {
    s.addEventListener('change', function () { s.form.requestSubmit(); });
  });

  // Where the bar of pages is longer than the window, the page that is shown is in sight.
  var nav = document.querySelector('.top nav');
  var here = nav && nav.querySelector('a[aria-current]');
  function reveal() { if (here) { nav.scrollLeft += here.getBoundingClientRect().left - nav.getBoundingClientRect().left - (nav.clientWidth - here.offsetWidth) / 2; } }
  reveal();
  addEventListener('resize', reveal);

  // Copy buttons.
  document.addEventListener('click', function (e) {
    var b = e.target.closest('[data-copy]');
    if (!b || !navigator.clipboard) { return; }
    navigator.clipboard.writeText(document.getElementById(b.dataset.copy).textContent).then(function () {
      var said = document.getElementById('said'); // a button that is named otherwise is not read out
      b.textContent = 'Copied';
      if (said) { said.textContent = 'Copied'; }
      setTimeout(function () {
        b.textContent = 'Copy';
        if (said) { said.textContent = ''; }
      }, 2000);
    });
  });
})();
