// What an operator may press. Each action says first what will happen, and its result is shown.

import { counted, make } from "./elements.js";
import { download, isOperator, send } from "./session.js";

// Most dead letters that one action retries, as the mill has it.
const RETRIED_MAX = 10_000;

const sendAction = async (action) => textOf(await send("/api/action", action));

/** A button that asks before it acts; nothing for visitors who may not act. `choice` is a field of the question; `carryOut` gives
 * the result in words, or throws. */
export function actionButton(label, question) {
  const { name = label, isDangerous = false } = question;
  if (!isOperator()) return null;
  const key = `action ${name}`;
  const button = make("button", { type: "button", "aria-label": name, "data-key": key, class: isDangerous ? "danger" : undefined }, label);
  button.addEventListener("click", () => confirmAction({ label, key, isDangerous, ...question }));
  return button;
}

/** Buttons beside each other; nothing if there are none. */
export function buttons(...of) {
  const shown = of.filter((button) => button !== null);
  return shown.length ? make("span", { class: "actions" }, shown) : null;
}

function confirmAction({ label, key, title, consequence, choice, isDangerous, action, carryOut = () => sendAction(action) }) {
  const confirm = make("button", { type: "submit", class: isDangerous ? "danger" : undefined }, label);
  const cancel = make("button", { type: "button" }, "Leave it");
  const problem = make("p", { class: "bad", role: "alert" });
  const form = make("form", { class: "column" },
    make("h2", { id: "confirm-title" }, title), make("p", {}, consequence), choice?.(), problem,
    make("p", { class: "actions" }, confirm, cancel));
  const dialog = make("dialog", { "aria-labelledby": "confirm-title" }, form);
  cancel.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    dialog.remove();
    // The button may have been drawn anew meanwhile, or be gone.
    const button = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    (button ?? document.getElementById("view")).focus({ preventScroll: true });
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    confirm.disabled = true;
    try {
      showResult(await carryOut(form));
      dialog.close();
    } catch (error) {
      problem.textContent = error.message;
      confirm.disabled = false;
    }
  });
  document.body.append(dialog);
  dialog.showModal();
  // The first control has the focus otherwise, and a key that is pressed once too often would do what cannot be undone.
  if (isDangerous) cancel.focus();
}

function textOf({ done, gap }) {
  if (!gap) return done;
  const span = gap.first === gap.last ? `Block ${gap.first} has` : `Blocks ${gap.first} to ${gap.last} have`;
  return `${done}. ${span} not been emitted, and the sequencer emits no later block until another message is submitted: ` +
    `to queue ${gap.queue}, or in its place to queue ${gap.sequencer_queue}.`;
}

/** Shows the result of the latest action. */
function showResult(text) {
  document.getElementById("result").textContent = text;
}

/** Download of a bundle: of one dead letter, or of all if no task is named. */
export function downloadBundle(task) {
  const withPrograms = () => make("label", {}, make("input", { type: "checkbox", name: "programs" }),
    " with the programs of the stages, to run it where they are not installed");
  const which = task ?? "all dead letters";
  return actionButton("Download", {
    name: `Download ${which}`,
    title: `Download a bundle of ${which}?`,
    consequence: "It has the inputs, which may be secret witnesses, the attempts, and the settings of the stages. " +
      "proofmill dlq replay runs it again on another machine.",
    choice: withPrograms,
    carryOut: async (form) => {
      const { name, bytes } = await download("/api/bundle", { task, with_programs: form.elements.programs.checked });
      return `${name} has ${bytes} bytes`;
    },
  });
}

/** Retry, drop and download, for a dead letter. */
export function deadActions({ task }) {
  return buttons(
    actionButton("Retry", {
      name: `Retry ${task}`,
      title: `Retry ${task}?`,
      consequence: "It goes back into its queue, and its earlier attempts are forgotten.",
      action: { action: "retry", task },
    }),
    actionButton("Drop", {
      name: `Drop ${task}`,
      title: `Drop ${task} for good?`,
      consequence: "It is given up. If it leads to the sequencer, no later block is emitted until another message takes its " +
        "block's place.",
      action: { action: "drop", task },
      isDangerous: true,
    }),
    downloadBundle(task),
  );
}

/** Retry all, for the dead letters that a text selects. */
export function retryAll(text, total) {
  const which = text ? `with “${text}”` : "of all kinds";
  const all = counted(total, "dead letter");
  const retried = total > RETRIED_MAX ? `the first ${RETRIED_MAX} of ${all}` : total === 1 ? all : `all ${all}`;
  return actionButton(total > RETRIED_MAX ? `Retry ${RETRIED_MAX} of ${total}` : `Retry all ${total}`, {
    title: `Retry ${retried}?`,
    consequence: `What goes back into its queue: ${retried} ${which}. Earlier attempts are forgotten.`,
    action: { action: "retry_all", filter: { text } },
  });
}

/** Run now and cancel, for a live task. */
export function taskActions({ task, phase }) {
  const runNow = phase !== "delayed" ? null : actionButton("Run now", {
    name: `Run now ${task}`,
    title: `Run ${task} now?`,
    consequence: "It does not wait for its next attempt: a free worker gets it at once.",
    action: { action: "run_now", task },
  });
  return buttons(runNow, actionButton("Cancel", {
    name: `Cancel ${task}`,
    title: `Cancel ${task}?`,
    consequence: "Programs that work on it are killed, and it goes to the dead letters, from where a retry brings it back.",
    action: { action: "cancel", target: { task } },
    isDangerous: true,
  }));
}

/** Cancel, for all live tasks of a block. */
export function blockActions(status) {
  if (!status.live) return null;
  return buttons(actionButton(`Cancel block ${status.block}`, {
    title: `Cancel all live tasks of block ${status.block}?`,
    consequence: `${counted(status.live, "task")} of it will be stopped, those that are also about other blocks included. Programs ` +
      "are killed, and the tasks go to the dead letters, from where a retry brings them back.",
    action: { action: "cancel", target: { block: status.block } },
    isDangerous: true,
  }));
}

/** The pause of a stage, source or worker; undefined if there is none. */
export function pauseOf(status, kind, name) {
  return status.pauses.find((it) => it.kind === kind && it.name === name);
}

const CONSEQUENCES = {
  stage: "It leases and emits nothing new until somebody resumes it, also after a restart. What has begun goes on.",
  source: "Its messages wait until somebody resumes it, also after a restart.",
  worker: "It finishes the tasks that it has and gets no others, until somebody resumes it or it leaves.",
};

/** Pause or resume (drain, for a worker). */
export function pauseActions(status, kind, name) {
  const verb = kind === "worker" ? "Drain" : "Pause";
  if (pauseOf(status, kind, name)) {
    return buttons(actionButton("Resume", {
      name: `Resume ${kind} ${name}`,
      title: `Resume ${kind} ${name}?`,
      consequence: "It goes on with its work.",
      action: { action: "resume", kind, name },
    }));
  }
  return buttons(actionButton(verb, {
    name: `${verb} ${kind} ${name}`,
    title: `${verb} ${kind} ${name}?`,
    consequence: CONSEQUENCES[kind],
    action: { action: "pause", kind, name },
  }));
}
