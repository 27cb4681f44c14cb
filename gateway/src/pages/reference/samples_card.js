// The card with the code of a request.

import { copyButton, h, show } from "./dom.js";
import { highlighted } from "./code.js";
import { LANGUAGES, sample } from "./samples.js";

const KEPT = "language";

export function requestCard(request) {
  let language = LANGUAGES.find(({ name }) => name === keptLanguage()) ?? LANGUAGES[0];
  const code = h("code");
  const pre = h("pre", { tabindex: "0", role: "group", "aria-label": "Code of the request" }, code);
  const update = () => show(code, highlighted(sample(language.name, request.described()), language.colour));
  const buttons = LANGUAGES.map((one) => h("button", { type: "button", "aria-pressed": String(one === language), onclick: () => {
    language = one;
    keepLanguage(one.name);
    buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(LANGUAGES[index] === one)));
    update();
  } }, one.title));
  request.listeners.push(update);
  update();
  return h("section", { class: "card", "aria-label": "Request" },
    h("div", { class: "bar" }, h("h2", null, "Request"),
      h("div", { class: "languages", role: "group", "aria-label": "Language of the code" }, buttons),
      copyButton(() => code.textContent, "the request")),
    pre);
}

function keptLanguage() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

function keepLanguage(name) {
  try {
    localStorage.setItem(KEPT, name);
  } catch {
    // Without storage the first language is shown.
  }
}
