// The OpenAPI document and the guides, as the page needs them.

const METHODS = ["get", "post", "put", "patch", "delete"];

/** Everything that the page shows. */
export async function load() {
  const [document, guides] = await Promise.all(["/openapi.json", "/docs/assets/guides.json"].map(fetched));
  const operations = operationsOf(document);
  const areas = (document.tags ?? []).map(({ name, description }) => {
    return { name, description: description ?? "", operations: operations.filter((one) => one.area === name) };
  });
  return {
    document,
    guides,
    operations,
    areas: areas.filter((area) => area.operations.length),
    events: eventsOf(document.webhooks ?? {}, document),
    problems: problemsOf(document),
    resolve: (value) => resolved(document, value),
  };
}

async function fetched(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path} was answered with ${response.status}`);
  return response.json();
}

/** What a reference refers to; any other value is itself. */
function resolved(document, value) {
  let found = value;
  for (let steps = 0; found?.$ref && steps < 10; steps += 1) {
    found = found.$ref.slice(2).split("/").reduce((at, name) => at?.[name.replace(/~1/g, "/").replace(/~0/g, "~")], document);
  }
  return found ?? {};
}

function operationsOf(document) {
  const found = [];
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of METHODS.filter((one) => item[one])) {
      const operation = item[method];
      const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map((one) => resolved(document, one));
      const scope = operation["x-required-scope"] ?? "";
      found.push({
        id: operation.operationId,
        method: method.toUpperCase(),
        path,
        area: operation.tags?.[0] ?? "",
        summary: operation.summary ?? operation.operationId,
        // The scope has a line of its own.
        description: (operation.description ?? "").replace(/\n*(Scope: |No key is needed: )[^\n]*$/, ""),
        // Alternatives, each of scopes that a key needs together.
        scopes: operation["x-required-scopes"] ?? [],
        scope,
        isPublic: (operation.security ?? []).length === 0,
        parameters,
        body: operation.requestBody && bodyOf(resolved(document, operation.requestBody)),
        answers: Object.entries(operation.responses ?? {}).map(([status, answer]) => ({ status, ...resolved(document, answer) })),
      });
    }
  }
  const rank = ({ path }) => (path.startsWith("/v1/") ? 0 : 1);
  // Paths come sorted; the methods of a path are in the order of `METHODS`.
  return found.sort((one, other) => rank(one) - rank(other));
}

function bodyOf(body) {
  const kinds = Object.entries(body.content ?? {});
  const [type, content] = kinds.find(([kind]) => kind === "application/json") ?? kinds[0] ?? ["", {}];
  return { type, types: kinds.map(([kind]) => kind), required: body.required === true, description: body.description ?? "", ...content };
}

/** The errors, by code, with the operations' statuses. */
function problemsOf(document) {
  const found = new Map();
  for (const response of Object.values(document.components?.responses ?? {})) {
    const examples = response.content?.["application/problem+json"]?.examples ?? {};
    for (const { value } of Object.values(examples)) {
      if (value?.code) found.set(value.code, value);
    }
  }
  return [...found.values()].sort((one, other) => one.status - other.status || one.code.localeCompare(other.code));
}

function eventsOf(webhooks, document) {
  return Object.entries(webhooks).map(([name, item]) => {
    const { summary, description, tags, requestBody, ...more } = item.post ?? {};
    const content = bodyOf(resolved(document, requestBody));
    return {
      name,
      title: summary && summary !== name ? summary : "",
      description: description ?? "",
      area: tags?.[0] ?? "",
      scope: more["x-required-scope"] ?? "",
      schema: content.schema ?? {},
      example: content.example ?? exampleOf(document, content.schema ?? {}),
    };
  });
}

/** A value that a schema describes: its examples, and what has none by its type. */
export function exampleOf(document, schema, depth = 0) {
  const found = merged(document, schema);
  if (found.example !== undefined) return found.example;
  if (found.examples?.length) return found.examples[0];
  if (found.const !== undefined) return found.const;
  if (found.default !== undefined) return found.default;
  if (found.enum?.length) return found.enum[0];
  const type = [found.type ?? (found.properties ? "object" : "string")].flat()[0];
  if (type === "object" && depth < 6) {
    const entries = Object.entries(found.properties ?? {});
    return Object.fromEntries(entries.map(([name, property]) => [name, exampleOf(document, property, depth + 1)]));
  }
  if (type === "array") return found.items && depth < 6 ? [exampleOf(document, found.items, depth + 1)] : [];
  return { object: {}, boolean: false, integer: 1, number: 1, null: null }[type] ?? "";
}

/** A schema with what it refers to, and the parts of `allOf` and of a choice with `null`, in one. */
export function merged(document, schema) {
  const { $ref, allOf, ...own } = schema ?? {};
  const parts = [...($ref ? [merged(document, resolved(document, { $ref }))] : []), ...(allOf ?? []).map((part) => merged(document, part)), own];
  const whole = Object.assign({}, ...parts);
  const properties = Object.assign({}, ...parts.map((part) => part.properties));
  if (Object.keys(properties).length) whole.properties = properties;
  const required = [...new Set(parts.flatMap((part) => part.required ?? []))];
  if (required.length) whole.required = required;
  const choices = whole.anyOf ?? whole.oneOf;
  const kinds = choices?.filter((one) => one.type !== "null");
  if (kinds?.length === 1 && choices.length === 2) {
    const { anyOf, oneOf, ...rest } = whole;
    const other = merged(document, kinds[0]);
    return { ...other, ...rest, type: [other.type ?? "object", "null"].flat() };
  }
  return whole;
}

/**
 * The body that the page proposes: the document's example. A reference to a record that only the example's author has
 * would be refused, so an optional one is left out; rows are filled in, because a document without any is rarely wanted.
 */
export function proposedBody(document, body) {
  if (!body?.type.includes("json") || !body.schema) return undefined;
  const schema = merged(document, body.schema);
  // A text without an example, such as a definition, is the author's.
  if (body.example === undefined && !schema.properties) return undefined;
  const example = body.example ?? exampleOf(document, schema);
  if (typeof example !== "object" || example === null || Array.isArray(example)) return example;
  const isNeeded = (name) => (schema.required ?? []).includes(name);
  const refers = (name) => /_(id|guid|external_id)$/.test(name);
  const kept = Object.entries(example).filter(([name]) => isNeeded(name) || !refers(name));
  const rows = Object.entries(schema.properties ?? {}).filter(([name, property]) => {
    return !(name in example) && /^(rows|lines)$/.test(name) && merged(document, property).items;
  });
  const filled = rows.map(([name, property]) => [name, [withExamples(document, merged(document, property).items)]]);
  return Object.fromEntries([...kept, ...filled]);
}

/** An object of the properties that have examples. */
function withExamples(document, schema) {
  const entries = Object.entries(merged(document, schema).properties ?? {});
  const known = entries.map(([name, property]) => [name, merged(document, property)]).filter(([, property]) => property.examples?.length);
  return Object.fromEntries(known.map(([name, property]) => [name, property.examples[0]]));
}
