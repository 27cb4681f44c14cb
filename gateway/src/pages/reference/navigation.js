// The navigation at the side.

import { h, show } from "./dom.js";

const nav = document.getElementById("navigation");

export function navigation(content) {
  const list = (items) => h("ul", null, items.map((item) => h("li", null, item)));
  const group = (title, links) => h("details", null, h("summary", null, title), list(links));
  const areas = content.areas.map((area) => group(area.name, [
    h("a", { href: `/docs/areas/${encodeURIComponent(area.name)}` }, "About"),
    ...area.operations.map((operation) => h("a", { href: `/docs/operations/${operation.id}` },
      h("span", { class: `method method-${operation.method.toLowerCase()}` }, operation.method === "DELETE" ? "DEL" : operation.method),
      h("span", null, operation.summary))),
  ]));
  const events = content.events.map(({ name }) => h("a", { href: `/docs/events/${name}` }, name));
  show(nav,
    list([h("a", { href: "/docs" }, "Overview")]),
    h("h2", null, "Guides"), list(content.guides.map(({ name, title }) => h("a", { href: `/docs/guides/${name}` }, title))),
    h("h2", null, "Operations"), areas,
    h("h2", null, "More"),
    group("Events", [h("a", { href: "/docs/events" }, "All events"), ...events]),
    list([h("a", { href: "/problems" }, "Error codes"), h("a", { href: "/openapi.json" }, "openapi.json")]));
}

/** Marks the link of this page, and opens the group that it is in. */
export function markCurrent() {
  const path = location.pathname.replace(/\/+$/, "");
  for (const link of nav.querySelectorAll("a")) {
    const isCurrent = new URL(link.href).pathname === path;
    if (!isCurrent) {
      link.removeAttribute("aria-current");
      continue;
    }
    link.setAttribute("aria-current", "page");
    const details = link.closest("details");
    if (details) details.open = true;
    const [box, place] = [nav.getBoundingClientRect(), link.getBoundingClientRect()];
    if (place.top < box.top || place.bottom > box.bottom) nav.scrollTop += place.top - box.top - box.height / 3;
  }
}
