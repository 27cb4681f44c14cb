// The API key: kept in this tab only, and sent nowhere but to this host.

const NAME = "key";
let memory = "";

export function key() {
  try {
    return sessionStorage.getItem(NAME) ?? memory;
  } catch {
    return memory;
  }
}

export function setKey(text) {
  memory = text.trim();
  try {
    if (memory) sessionStorage.setItem(NAME, memory);
    else sessionStorage.removeItem(NAME);
  } catch {
    // Without storage the key is in memory only.
  }
}
