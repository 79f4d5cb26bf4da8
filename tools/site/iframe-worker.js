// Browsers start no workers for pages from disk. There, the search runs in a frame of the page instead; the generator loads
// this file because of its name.
if (location.protocol === "file:") {
  window.Worker = class {
    #frame = document.createElement("iframe")
    #waiting = []
    #inner = null

    constructor(url) {
      this.#frame.hidden = true
      this.#frame.srcdoc = "<!doctype html>"
      this.#frame.onload = () => {
        const inner = this.#frame.contentWindow
        const script = inner.document.createElement("script")
        script.src = new URL(url, location.href).href
        script.onload = () => {
          this.#inner = inner
          this.#waiting.splice(0).forEach(data => this.postMessage(data))
        }
        script.onerror = event => this.onerror?.(event)
        // What the worker says is heard a moment later, as between threads.
        inner.postMessage = data => setTimeout(() => this.onmessage?.({ data: structuredClone(data) }))
        inner.document.head.append(script)
      }
      document.documentElement.append(this.#frame)
    }

    postMessage(data) {
      if (this.#inner === null) this.#waiting.push(data)
      else this.#inner.onmessage({ data: this.#inner.structuredClone(data) })
    }

    terminate() {
      this.#frame.remove()
    }
  }
}
