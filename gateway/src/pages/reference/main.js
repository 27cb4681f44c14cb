// Starts the reference: loads the document, shows the page of the address, and follows links without loading again.

import { h, show } from "./dom.js";
import { load } from "./document.js";
import { navigation, markCurrent } from "./navigation.js";
import { operationPage } from "./operation.js";
import { areaPage, eventPage, eventsPage, guidePage, notFoundPage, overviewPage } from "./pages.js";
import { searchBox } from "./searchbox.js";
import { themeSwitch } from "./theme_switch.js";

const main = document.getElementById("page");

/** The page of an address, with its title. */
function pageOf(content, path) {
  const [, , kind, ...rest] = path.split("/");
  const name = decoded(rest.join("/"));
  const titled = (found, title, page) => (found ? [title(found), page(content, found)] : ["Not found", notFoundPage()]);
  if (!kind) return ["Overview", overviewPage(content)];
  if (kind === "operations") return titled(content.operations.find(({ id }) => id === name), ({ summary }) => summary, operationPage);
  if (kind === "guides") return titled(content.guides.find((guide) => guide.name === name), ({ title }) => title, guidePage);
  if (kind === "areas") return titled(content.areas.find((area) => area.name === name), (area) => area.name, areaPage);
  if (kind === "events" && !name) return ["Events", eventsPage(content)];
  if (kind === "events") return titled(content.events.find((event) => event.name === name), (event) => event.name, eventPage);
  return ["Not found", notFoundPage()];
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

function draw(content, isFirst) {
  const [title, page] = pageOf(content, location.pathname.replace(/\/+$/, ""));
  document.title = `${title}: ${content.document.info.title}`;
  show(main, page);
  markCurrent();
  document.body.classList.remove("menu");
  document.getElementById("menu").setAttribute("aria-expanded", "false");
  if (location.hash) {
    toAnchor();
  } else if (!isFirst) {
    window.scrollTo(0, 0);
    // Where the keyboard and the screen reader go on.
    main.querySelector("h1")?.focus({ preventScroll: true });
  }
}

function toAnchor() {
  const target = document.getElementById(decoded(location.hash.slice(1)));
  if (!target) return;
  for (let above = target.parentElement; above; above = above.parentElement) {
    if (above.localName === "details") above.open = true;
  }
  target.scrollIntoView();
  for (const marked of main.querySelectorAll(".target")) marked.classList.remove("target");
  target.classList.add("target");
}

function open(content, href) {
  const url = new URL(href, location.href);
  if (!isOurs(url)) {
    location.assign(url.href);
    return;
  }
  const isSamePage = url.pathname === location.pathname;
  history.pushState(null, "", url);
  if (isSamePage && url.hash) toAnchor();
  else draw(content, false);
}

function isOurs(url) {
  return url.origin === location.origin && /^\/docs(\/(?!assets\/)|$)/.test(url.pathname);
}

/** Follows links within the reference; anything special about a click is the browser's. */
function followLinks(content) {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (link.hasAttribute("download") || !isOurs(new URL(link.href)) || link.classList.contains("skip")) return;
    event.preventDefault();
    open(content, link.href);
  });
  window.addEventListener("popstate", () => {
    oldAddress(content);
    draw(content, false);
  });
}

/** What a piece of code leads to: an event, an operation's path, or an error code. */
function links(content) {
  const found = new Map();
  for (const { path, method, id } of content.operations) found.set(`${method} ${path}`, `/docs/operations/${id}`);
  for (const { name } of content.events) found.set(name, `/docs/events/${name}`);
  // A code of one word may mean a field as well.
  for (const { code } of content.problems) if (code.includes("_")) found.set(code, `/problems/${code}`);
  return (code) => found.get(code);
}

/** Links of the page that was here before: `#/Clients/listClients`. */
function oldAddress(content) {
  const id = /^#\/[^/]+\/(\w+)$/.exec(location.hash)?.[1];
  if (content.operations.some((operation) => operation.id === id)) history.replaceState(null, "", `/docs/operations/${id}`);
}

function menu() {
  const button = document.getElementById("menu");
  const set = (isOpen) => {
    document.body.classList.toggle("menu", isOpen);
    button.setAttribute("aria-expanded", String(isOpen));
  };
  button.addEventListener("click", () => set(!document.body.classList.contains("menu")));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !document.body.classList.contains("menu")) return;
    set(false);
    button.focus();
  });
}

async function start() {
  themeSwitch();
  menu();
  let content;
  try {
    content = await load();
  } catch (error) {
    show(main, h("h1", null, "The reference could not be loaded"), h("p", null, error.message), h("p", null, h("a", { href: "" }, "Try again")));
    return;
  }
  content.link = links(content);
  oldAddress(content);
  navigation(content);
  searchBox(content, (href) => open(content, href));
  followLinks(content);
  draw(content, true);
  document.documentElement.dataset.ready = "";
}

start();
