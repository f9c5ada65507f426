// Logging in with a token: from the form, or from the address that the program has printed.

import { make } from "../elements.js";
import { logIn } from "../session.js";

/** `loggedIn` is called once there is a session. */
export function loginView(loggedIn, [token]) {
  const field = make("input", { id: "token", type: "password", name: "token", autocomplete: "current-password", required: true });
  const problem = make("p", { class: "bad", role: "alert" });
  const form = make("form", { class: "column" },
    make("label", { for: "token" }, "Token"), field, make("button", {}, "Log in"), problem);
  const attempt = async (word) => {
    try {
      await logIn(word);
      loggedIn();
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(field.value);
  });
  if (token) {
    // The token is a secret: it must not stay in the address or in the browser's history.
    history.replaceState(null, "", "#/login");
    attempt(token);
  }
  return [
    make("h2", {}, "Log in"),
    make("p", { class: "quiet" }, "With a token of the file that the console was started with, or the address that it has printed."),
    form,
  ];
}
