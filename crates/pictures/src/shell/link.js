// Links what has a player, by its text, to a page of that.
const linkPlayers = async (cells, { shell, own }) => {
  const page = await inflated(shell).text();
  for (const cell of cells) {
    const player = own[cell.textContent], link = document.createElement("a");
    if (!player) continue;
    const html = page.replace(/@(title|lines|summary|data)@/g, (_, part) => player[part]);
    link.textContent = cell.textContent;
    link.target = "_blank";
    link.href = URL.createObjectURL(new Blob([html], { type: "text/html" }));
    cell.replaceChildren(link);
  }
};
