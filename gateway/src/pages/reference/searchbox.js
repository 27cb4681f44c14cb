// The search box: a combobox with the list of what was found.

import { announce, h, show } from "./dom.js";
import { MAX_RESULTS, find, indexOf } from "./search.js";

const NAMES = { guide: "Guide", section: "Section", operation: "Operation", area: "Area", event: "Event", error: "Error", parameter: "Parameter", field: "Field" };

export function searchBox(content, open) {
  const input = document.getElementById("search");
  const list = document.getElementById("found");
  let entries = null;
  let found = [];
  let chosen = -1;

  const close = () => {
    list.hidden = true;
    chosen = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const choose = (index) => {
    list.children[chosen]?.setAttribute("aria-selected", "false");
    chosen = index;
    const option = list.children[chosen];
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", option.id);
  };
  const go = (index) => {
    const { href } = found[index];
    close();
    input.value = "";
    input.blur();
    open(href);
  };
  const update = () => {
    const query = input.value.trim();
    if (!query) {
      close();
      return;
    }
    entries ??= indexOf(content);
    const all = find(entries, query);
    found = all.slice(0, MAX_RESULTS);
    chosen = -1;
    const options = found.map((entry, index) => h("li", { id: `found-${index}`, role: "option", "aria-selected": "false", onclick: () => go(index) },
      h("span", { class: `kind kind-${entry.kind}` }, NAMES[entry.kind]),
      h("span", { class: "title" }, entry.title), " ",
      h("span", { class: "about" }, entry.about)));
    show(list, options.length ? options : h("li", { class: "none", role: "option", "aria-disabled": "true", "aria-selected": "false" }, `Nothing has all of these words: ${query}`));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    announce(all.length === 1 ? "1 result" : `${all.length} results`);
    if (found.length) choose(0);
  };

  input.addEventListener("input", update);
  input.addEventListener("focus", () => { if (input.value) update(); });
  input.addEventListener("blur", () => setTimeout(() => { if (document.activeElement !== input) close(); }, 150));
  // Else the box would lose the focus before the click.
  list.addEventListener("mousedown", (event) => event.preventDefault());
  input.addEventListener("keydown", (event) => {
    const last = found.length - 1;
    if (event.key === "Escape") {
      if (list.hidden) input.blur();
      input.value = "";
      close();
    } else if (list.hidden || !found.length) {
      return;
    } else if (event.key === "ArrowDown") choose(chosen >= last ? 0 : chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen <= 0 ? last : chosen - 1);
    else if (event.key === "Enter") go(Math.max(chosen, 0));
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      input.focus();
      input.select();
    }
  });
}
