// JSON as it is read, and a little colour for code.

import { h } from "./dom.js";

const COLOURS = {
  json: [["key", /"(?:[^"\\]|\\.)*"(?=\s*:)/], ["text", /"(?:[^"\\]|\\.)*"/], ["value", /\b(?:true|false|null)\b|-?\b\d[\d.eE+-]*/]],
  python: [["note", /#[^\n]*/], ["text", /"(?:[^"\\]|\\.)*"/], ["value", /\b(?:True|False|None|\d[\d.]*)\b/], ["word", /\b(?:import|from|with|as|def|return|if|not|for|in|while|raise|print)\b/]],
  javascript: [["note", /\/\/[^\n]*/], ["text", /"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`/], ["value", /\b(?:true|false|null|\d[\d.]*)\b/], ["word", /\b(?:const|let|await|async|new|throw|if|return|import|from|for|of|function|export|while)\b/]],
  sh: [["note", /(?<=^|\n)\s*#[^\n]*/], ["text", /'[^']*'|"(?:[^"\\]|\\.)*"/], ["word", /(?<=^|\n)(?:curl|export|jq|python3)\b/]],
};

/** The code as text and coloured spans. */
export function highlighted(code, language) {
  const colours = COLOURS[language];
  if (!colours) return [code];
  const every = new RegExp(colours.map(([, pattern]) => `(${pattern.source})`).join("|"), "g");
  const parts = [];
  let from = 0;
  for (const match of code.matchAll(every)) {
    const [name] = colours[match.slice(1).findIndex((found) => found !== undefined)];
    parts.push(code.slice(from, match.index), h("span", { class: `c-${name}` }, match[0]));
    from = match.index + match[0].length;
  }
  parts.push(code.slice(from));
  return parts;
}

/** JSON with line breaks and indents; numbers and texts stay exactly as they were sent. */
export function pretty(json) {
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g) ?? [];
  return tokens.map((token, index) => {
    if (token === "{" || token === "[") {
      const closed = "}]".includes(tokens[index + 1]);
      depth += closed ? 0 : 1;
      return closed ? token : token + line();
    }
    if (token === "}" || token === "]") {
      if ("{[".includes(tokens[index - 1])) return token;
      depth -= 1;
      return line() + token;
    }
    if (token === ",") return token + line();
    return token === ":" ? ": " : token;
  }).join("");
}
