// The pages that are read: overview, areas, guides, events.

import { breakable, copyButton, h } from "./dom.js";
import { fieldList } from "./fields.js";
import { blocks, headings, plain } from "./markdown.js";
import { method } from "./operation.js";
import { highlighted, pretty } from "./code.js";

export function overviewPage(content) {
  const { info } = content.document;
  const text = info.description ?? "";
  return h("article", { class: "guide" },
    h("div", { class: "text" },
      h("h1", { tabindex: "-1" }, info.title),
      h("ul", { class: "tiles" }, content.guides.map((guide) => h("li", null,
        h("a", { href: `/docs/guides/${guide.name}` }, h("strong", null, guide.title), h("span", null, guide.about))))),
      blocks(text, { link: content.link, base: location.origin })),
    onThisPage(headings(text)));
}

export function guidePage(content, guide) {
  const index = content.guides.indexOf(guide);
  const next = content.guides[index + 1];
  return h("article", { class: "guide" },
    h("div", { class: "text" },
      h("p", { class: "crumb" }, "Guide"),
      h("h1", { tabindex: "-1" }, guide.title),
      h("p", { class: "lead" }, guide.about),
      blocks(guide.text, { link: content.link, base: location.origin }),
      guide.name === "webhooks" && eventTable(content, "h3"),
      next && h("p", { class: "next" }, "Next: ", h("a", { href: `/docs/guides/${next.name}` }, next.title))),
    onThisPage(headings(guide.text)));
}

function onThisPage(parts) {
  if (parts.length < 2) return null;
  return h("aside", { class: "contents", "aria-labelledby": "contents-title" },
    h("h2", { id: "contents-title" }, "On this page"),
    h("ul", null, parts.map(({ id, title }) => h("li", null, h("a", { href: `#${id}` }, title)))));
}

export function areaPage(content, area) {
  const events = content.events.filter((event) => event.area === area.name);
  return h("article", { class: "guide" }, h("div", { class: "text" },
    h("p", { class: "crumb" }, "Area"),
    h("h1", { tabindex: "-1" }, area.name),
    blocks(area.description, { link: content.link }),
    h("h2", null, "Operations"),
    h("ul", { class: "operations" }, area.operations.map((operation) => h("li", null,
      h("a", { href: `/docs/operations/${operation.id}` }, operation.summary),
      h("span", { class: "address" }, method(operation.method), " ", h("code", null, breakable(operation.path)))))),
    events.length > 0 && [h("h2", null, "Events"), eventList(events)]));
}

export function eventsPage(content) {
  return h("article", { class: "guide" }, h("div", { class: "text" },
    h("h1", { tabindex: "-1" }, "Events"),
    h("p", null, "What happens in an account is told to webhook endpoints and to flows, and is listed by ",
      h("a", { href: "/docs/operations/listEvents" }, "List events"), ". The guide ", h("a", { href: "/docs/guides/webhooks" }, "Webhooks"), " says how to receive them."),
    eventTable(content, "h2")));
}

/** All events by area, below headings of this kind. */
function eventTable(content, heading) {
  const areas = [...new Set(content.events.map(({ area }) => area))];
  return areas.map((area) => [h(heading, null, area), eventList(content.events.filter((event) => event.area === area))]);
}

function eventList(events) {
  return h("dl", { class: "events" }, events.map((event) => h("div", null,
    h("dt", null, h("a", { href: `/docs/events/${event.name}` }, h("code", null, breakable(event.name)))),
    h("dd", null, plain(event.description).split("\n")[0]))));
}

export function eventPage(content, event) {
  const context = { document: content.document, link: content.link, isInput: false };
  const example = pretty(JSON.stringify(event.example));
  return h("article", { class: "operation" },
    h("div", { class: "text" },
      h("p", { class: "crumb" }, h("a", { href: "/docs/events" }, "Events")),
      h("h1", { tabindex: "-1" }, h("code", null, breakable(event.name))),
      event.title && h("p", null, event.title),
      blocks(event.description, context),
      event.scope && h("p", { class: "needs" }, h("strong", null, "Needs "), "Endpoints and keys with the scope ", h("code", null, event.scope), " get it."),
      h("h2", null, "What is sent"),
      fieldList(context, event.schema, "event"),
      h("h2", null, "How it is sent"),
      h("p", null, "As a POST with the headers ", ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name, index) => [index ? ", " : "", h("code", null, name)]),
        ". The guide ", h("a", { href: "/docs/guides/webhooks" }, "Webhooks"), " shows how to check the signature.")),
    h("div", { class: "cards" }, h("section", { class: "card", "aria-label": "Example" },
      h("div", { class: "bar" }, h("h2", null, "Example"), copyButton(() => example, "the example")),
      h("pre", { tabindex: "0", role: "group", "aria-label": "Example of the event" }, h("code", null, highlighted(example, "json"))))));
}

export function notFoundPage() {
  return h("article", { class: "guide" }, h("div", { class: "text" },
    h("h1", { tabindex: "-1" }, "This page is not here"),
    h("p", null, "The reference has no such page. Search for it, or begin at the ", h("a", { href: "/docs" }, "overview"), ".")));
}
