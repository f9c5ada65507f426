// A service as it is now: one stream of whole overviews. A reconnect begins with the present one, so nothing is missed.

// Longest silence of a stream, milliseconds: a server that has nothing new to say gives a sign of life every ten seconds.
const SILENCE_MAX_MS = 25_000;

/** A stream of overviews that the server offers at `path`. Nobody listens until it is connected. */
export function streamOf(path) {
  let latest = null;
  let stream = null;
  let lost = null;
  let watchdog;
  const listeners = new Set();
  const tell = () => {
    for (const listener of listeners) listener();
  };

  // A link may end without an error, as when a laptop sleeps or a tunnel dies: only the silence tells.
  function heard() {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => {
      connect();
      lost = `the console has been silent for ${SILENCE_MAX_MS / 1000} s`;
      tell();
    }, SILENCE_MAX_MS);
  }

  function connect() {
    disconnect();
    const events = new EventSource(path);
    stream = events;
    heard();
    events.addEventListener("overview", (event) => {
      [latest, lost] = [JSON.parse(event.data), null];
      heard();
      tell();
    });
    events.addEventListener("lost", (event) => {
      lost = event.data;
      heard();
      tell();
    });
    events.addEventListener("alive", heard);
    // The browser connects again by itself, unless it was refused. While it tries, the link is known to be lost.
    events.addEventListener("error", () => {
      if (stream !== events) return;
      heard();
      if (events.readyState === EventSource.CLOSED) setTimeout(() => stream === events && connect(), 2000);
      lost = "the console does not answer";
      tell();
    });
  }

  function disconnect() {
    clearTimeout(watchdog);
    stream?.close();
    stream = null;
  }

  return {
    /** The latest overview; null before the first. */
    overview: () => latest,
    /** The reason why there is none now; null while the stream is there. */
    failure: () => lost,
    /** Whether it listens. */
    isConnected: () => stream !== null,
    /** Calls `listener` after each change. */
    onChange: (listener) => listeners.add(listener),
    /** Begins to listen, anew if it does already. */
    connect,
    /** Ends to listen. */
    disconnect,
  };
}

// Time between two drawings while nothing changes, milliseconds: ages grow.
const AGES_EVERY_MS = 5000;

/**
 * Has a page be live while it is in sight: `enter` is called when it comes into sight, `leave` when it is hidden, and `stay` now and
 * then in between. A browser has six connections to a server for all its pages, so hidden ones must hold none.
 */
export function whileInSight({ enter, stay, leave }) {
  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : enter()));
  setInterval(() => document.hidden || stay(), AGES_EVERY_MS);
}

// The page's own service: the mill, the engine or the verifier.
export const { overview, failure, onChange, connect, disconnect } = streamOf("/api/events");
