// Elements, made of names, properties and children. Text never becomes markup.

/** An element. Properties that are `on…` are listeners, the others attributes; `false` and `null` ones are left out. */
export function h(name, properties, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  add(element, children);
  return element;
}

export function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

export function show(element, ...children) {
  element.replaceChildren();
  return add(element, children);
}

/** Text whose long words may break after their signs. */
export function breakable(text) {
  return text.split(/(?<=[/_.])/).flatMap((part, index) => (index ? [h("wbr"), part] : [part]));
}

let last = 0;

/** An id that no other element has. */
export function freshId(prefix) {
  last += 1;
  return `${prefix}-${last}`;
}

/** A button that copies what `text` returns, and says so. */
export function copyButton(text, label) {
  const button = h("button", { type: "button", class: "copy", "aria-label": `Copy ${label}` }, "Copy");
  button.addEventListener("click", async () => {
    let said = "Copied";
    try {
      await navigator.clipboard.writeText(text());
    } catch {
      said = "Not allowed";
    }
    button.textContent = said;
    announce(said);
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return button;
}

/** Tells a screen reader what changed. */
export function announce(text) {
  document.getElementById("said").textContent = text;
}
