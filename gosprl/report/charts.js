// Draws each chart again in the place of its static picture, as wide as there is room, so that it answers to the pointer.
const charts = JSON.parse(document.getElementById("specs").textContent);
const calm = { actions: false, renderer: "svg", ast: true, tooltip: { theme: "custom" } };

async function draw(chart, i) {
  const place = document.getElementById(`chart-${i}`);
  const width = Math.min(place.clientWidth, chart.widest);
  if (width < 50 || place.dataset.width === String(width)) return;
  place.dataset.width = String(width);
  const spec = { ...chart.spec, width };
  if (chart.aspect !== null) spec.height = Math.round(chart.aspect * width + chart.below);
  const live = document.createElement("div");
  await window.vegaEmbed(live, spec, calm);
  place.replaceChildren(live);
  place.dataset.live = "yes";
}

async function drawAll() {
  for (let i = 0; i < charts.length; i++) {
    try {
      await draw(charts[i], i);
    } catch (error) {
      console.error(`chart ${i}: ${error}`); // its static picture stays
    }
  }
  document.documentElement.dataset.drawn = "yes";
}

let waiting;
window.addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(drawAll, 150);
});
window.addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
drawAll();
