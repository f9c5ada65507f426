// Who looks at the page: the visitor's name and role, logging in and out.

let present = { name: null, role: null, csrf: null, may_look: false, may_log_in: false };

/** The visitor: name, role, whether one may look, and whether one may log in. */
export function visitor() {
  return present;
}

/** Whether the visitor may act. */
export function isOperator() {
  return present.role === "operator";
}

// Longest wait for the answer to a question, milliseconds. On a link that has died it would be many minutes.
const ANSWER_TIME_MAX_MS = 30_000;

/** Asks the server who the visitor is. Throws if it does not answer. */
export async function loadSession() {
  present = await get("/api/session");
  return present;
}

/** The reason of a refusal, in words. */
async function reasonOf(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error ?? text;
  } catch {
    return text.trim() || `status ${response.status}`;
  }
}

/** The answer to a request. Throws with the reason if it is refused, or if there is none. */
async function ask(path, options) {
  const response = await fetch(path, options).catch(() => {
    throw new Error("the console does not answer");
  });
  if (!response.ok) throw new Error(await reasonOf(response));
  return response;
}

/** The answer to a question. Throws with the reason if it is refused. */
export async function get(path) {
  const response = await ask(path, { signal: AbortSignal.timeout(ANSWER_TIME_MAX_MS) });
  return response.json();
}

/** The answer to a request with the number of the session. Throws with the reason if it is refused. */
function post(path, body) {
  const headers = { "content-type": "application/json" };
  if (present.csrf) headers["x-csrf-token"] = present.csrf;
  return ask(path, { method: "POST", headers, body: JSON.stringify(body) });
}

/** Sends a change with the number of the session. Throws with the reason if it is refused. */
export async function send(path, body) {
  const response = await post(path, body);
  return response.status === 204 ? null : response.json();
}

/** Has the browser save the file that a request is answered with. Gives its name and size; throws with the reason if it is refused. */
export async function download(path, body) {
  const response = await post(path, body);
  const [, name] = response.headers.get("content-disposition").match(/filename="(.*)"/);
  const file = await response.blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  // The browser has its own hold on what it saves by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  return { name, bytes: file.size };
}

/** Begins a session. Throws with the reason if the token is refused. */
export async function logIn(token) {
  await send("/api/login", { token });
  await loadSession();
}

/** Ends the session. */
export async function logOut() {
  await send("/api/logout", {});
  await loadSession();
}
