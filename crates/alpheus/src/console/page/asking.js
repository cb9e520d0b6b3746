// Ask: which data there is, what a query would reveal, and starting it.
import { ask } from "/api.js";
import { button, failure, make, show, table } from "/dom.js";

export async function begin(main) {
  const statement = make("textarea", { id: "statement", spellcheck: "false", autocapitalize: "off", "aria-describedby": "hint" });
  statement.value = sessionStorage.getItem("statement") ?? "";
  const answer = make("div", { id: "answer", "aria-live": "polite" });
  const say = async (sql, explain = false) => {
    sessionStorage.setItem("statement", statement.value);
    if (!sql.trim()) return show(answer, make("p", { class: "quiet" }, "Write a statement first, or look at which streams there are."));
    show(answer, make("p", { class: "quiet" }, "Asking …"));
    try {
      const said = await ask("/api/statements", { sql, explain });
      show(answer,
        said.running ? make("p", { class: "note" }, `${said.running} is running. `, make("a", { href: "#/results" }, "See its results")) : null,
        said.text ? make("pre", { class: "answer" }, said.text) : null,
        ...said.tables.map((each) => table(each.title, each.columns, each.rows)));
      if (said.running) sessionStorage.setItem("query", said.running);
    } catch (error) {
      show(answer, failure(error));
    }
    return undefined;
  };
  const explain = () => say(statement.value, true);
  main.append(
    make("h1", {}, "Ask"),
    make("p", { class: "lead" }, "A query runs until you stop it, and gives one result for each window."),
    make("div", { class: "card" },
      make("label", { for: "statement" }, "A statement"), statement,
      make("p", { id: "hint", class: "quiet small" }, "CREATE STREAM starts a query. What it would reveal, and to whom, you can see first. A refusal names the rule, and the nearest query that is allowed."),
      make("div", { class: "row" },
        button("What would it reveal?", explain, { class: "plain", id: "explain" }),
        button("Run it", () => say(statement.value), { id: "ask" })),
      answer),
    make("div", { class: "row" },
      button("Which streams are there?", () => say("SHOW STREAMS"), { class: "plain" }),
      button("What may be asked?", () => say("SHOW SCHEMAS"), { class: "plain" }),
      button("Which queries are running?", () => say("SHOW QUERIES"), { class: "plain" })));
}
