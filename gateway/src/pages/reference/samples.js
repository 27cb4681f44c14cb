// The same request in three languages.

const TOOLS = { curl: ["curl", "sh", curl], javascript: ["JavaScript", "javascript", javascript], python: ["Python", "python", python] };

/** The languages: name, title and how they are coloured. */
export const LANGUAGES = Object.entries(TOOLS).map(([name, [title, colour]]) => ({ name, title, colour }));

/**
 * The code that sends a request: `{method, url, headers, body, hasFile, isPublic, answers}`. `body` is text, unless a file
 * is sent; `answers` is `json`, `file` or `nothing`. The key comes from the environment, so that it is never part of what is pasted.
 */
export function sample(language, request) {
  return TOOLS[language][2](request);
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curl({ method, url, headers, body, hasFile, isPublic, answers }) {
  const parts = [`curl ${method === "GET" ? "" : `-X ${method} `}${quoted(url)}`];
  if (!isPublic) parts.push('-H "Authorization: Bearer $API_KEY"');
  for (const [name, value] of headers) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (hasFile) parts.push("--data-binary @file");
  else if (body) parts.push(`-d ${quoted(body)}`);
  if (answers === "file") parts.push("-o answer");
  return parts.join(" \\\n  ");
}

function javascript({ method, url, headers, body, hasFile, isPublic, answers }) {
  const lines = hasFile ? ['import { readFile } from "node:fs/promises";', ""] : [];
  lines.push(`const response = await fetch(${JSON.stringify(url)}, {`, `  method: ${JSON.stringify(method)},`, "  headers: {");
  if (!isPublic) lines.push("    Authorization: `Bearer ${process.env.API_KEY}`,");
  for (const [name, value] of headers) lines.push(`    ${JSON.stringify(name)}: ${JSON.stringify(value)},`);
  lines.push("  },");
  if (hasFile) lines.push('  body: await readFile("file"),');
  else if (body) lines.push(`  body: ${isJson(body) ? `JSON.stringify(${indented(body, "  ")})` : JSON.stringify(body)},`);
  lines.push("});", "if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);");
  if (answers === "json") lines.push("const { data, meta } = await response.json();", "console.log(data, meta);");
  if (answers === "file") lines.push("const bytes = new Uint8Array(await response.arrayBuffer());", "console.log(bytes.length);");
  return lines.join("\n");
}

function python({ method, url, headers, body, hasFile, isPublic, answers }) {
  const isLiteral = body && isJson(body);
  const imports = [isLiteral || answers === "json" ? "json" : "", isPublic ? "" : "os", "urllib.request"].filter(Boolean);
  const lines = [...imports.map((name) => `import ${name}`), "", "request = urllib.request.Request(", `    ${JSON.stringify(url)},`, `    method=${JSON.stringify(method)},`, "    headers={"];
  if (!isPublic) lines.push('        "Authorization": "Bearer " + os.environ["API_KEY"],');
  for (const [name, value] of headers) lines.push(`        ${JSON.stringify(name)}: ${JSON.stringify(value)},`);
  lines.push("    },");
  if (hasFile) lines.push('    data=open("file", "rb").read(),');
  else if (body) lines.push(isLiteral ? `    data=json.dumps(${literal(indented(body, "    "))}).encode(),` : `    data=${JSON.stringify(body)}.encode(),`);
  lines.push(")", "with urllib.request.urlopen(request) as response:");
  const read = { json: ["    answer = json.load(response)", 'print(answer["data"], answer["meta"])'], file: ["    content = response.read()", "print(len(content))"], nothing: ["    print(response.status)"] };
  return [...lines, ...read[answers]].join("\n");
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const indented = (text, by) => text.replace(/\n/g, `\n${by}`);

/** JSON as Python: the names of three values differ. */
function literal(json) {
  const names = { true: "True", false: "False", null: "None" };
  return json.replace(/"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g, (token) => names[token] ?? token);
}
