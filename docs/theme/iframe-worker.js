// Browsers start no workers for pages that are opened from disk. The search of the site runs in a hidden frame instead, which can load the
// same script. Pages that come from a server keep the browser's own workers.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html>";
      this.started = new Promise((resolve, reject) => {
        frame.addEventListener("load", () => {
          const inside = frame.contentWindow;
          // What the script sends goes to the listeners of this object.
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = inside.document.createElement("script");
          script.src = url;
          script.addEventListener("load", () => resolve(inside));
          script.addEventListener("error", () => reject(new Error(`cannot load ${url}`)));
          inside.document.head.append(script);
        }, { once: true });
      });
      document.body.append(frame);
      this.frame = frame;
    }

    postMessage(data) {
      this.started.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
