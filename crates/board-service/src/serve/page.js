// Shows the latest epoch's messages, as text only, so that no message becomes markup.
const about = document.getElementById("about");
const list = document.getElementById("messages");
let shown = null;

async function show() {
  const board = await (await fetch("/v1/board")).json();
  if (board.last === null) {
    about.textContent = "No epoch has been published yet.";
    return;
  }
  if (board.last === shown) return;
  const answer = await fetch(`/v1/board/${board.last}`);
  if (!answer.ok) return;
  const epoch = await answer.json();
  shown = epoch.epoch;
  const flag = epoch.flagged ? " Far more rows are illegible than chance explains." : "";
  about.textContent =
    `Epoch ${epoch.epoch}: ${epoch.writes} writes, covers included; ` +
    `${epoch.messages.length} messages, ${epoch.illegible} illegible rows.${flag}`;
  list.replaceChildren(...epoch.messages.map((message) => {
    const item = document.createElement("li");
    item.textContent = message;
    return item;
  }));
}

setInterval(() => show().catch(() => {}), 2000);
show().catch(() => { about.textContent = "This server does not answer."; });
