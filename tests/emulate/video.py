"""A video that a browser draws and gives as octets: what tests of frozen pictures play."""

#: A function of JavaScript.
RECORD = """\
async () => {
  const canvas = document.createElement("canvas");
  const drawing = canvas.getContext("2d");
  let drawn = 0;
  const clock = setInterval(() => {
    for (let x = 0; x < 320; x += 16) for (let y = 0; y < 160; y += 16) {
      drawing.fillStyle = `hsl(${(drawn * 7 + x * y) % 360} 90% 50%)`;
      drawing.fillRect(x, y, 16, 16);
    }
    drawn++;
  }, 40);
  const recorder = new MediaRecorder(canvas.captureStream(25), {mimeType: "video/webm", videoBitsPerSecond: 400000});
  const parts = [];
  recorder.ondataavailable = (event) => parts.push(event.data);
  recorder.start(200);
  await new Promise((done) => setTimeout(done, 3000));
  await new Promise((done) => { recorder.onstop = done; recorder.stop(); });
  clearInterval(clock);
  return [...new Uint8Array(await new Blob(parts).arrayBuffer())];
}"""
