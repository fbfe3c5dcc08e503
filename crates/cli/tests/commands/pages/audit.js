// Audits a page or a picture: the lowest contrast of a visible text with what is painted behind it,
// what one selects with everything, and whether the page is wider than its window. Evaluates to an
// object.
(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = colour => {
    const [r, g, b] = rgba(colour).slice(0, 3).map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + .05) / (low + .05);
  };
  // What an element paints behind its contents, if it is opaque.
  const paint = (element, point) => {
    const style = getComputedStyle(element);
    if (element instanceof SVGElement && !(element instanceof SVGSVGElement)) {
      return element instanceof SVGTextElement || style.fill === "none" || !element.isPointInFill?.(point(element)) ? null : style.fill;
    }
    return rgba(style.backgroundColor)[3] > 250 ? style.backgroundColor : null;
  };
  const worst = { contrast: 99, text: "" };
  let texts = 0;
  const root = document.body ?? document.documentElement;
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const owner = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || owner.closest("script, style, title, noscript, [hidden]")) continue;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const box = range.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    if (texts % 40 === 0 || !(box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth)) {
      owner.scrollIntoView({ block: "center", inline: "center" });
    }
    const at = range.getBoundingClientRect(), x = at.x + at.width / 2, y = at.y + at.height / 2;
    const below = document.elementsFromPoint(x, y), place = below.indexOf(owner);
    // Hidden by something, or scrolled out of a box.
    if (place < 0) continue;
    texts++;
    const point = element => {
      const matrix = element.getScreenCTM().inverse();
      return new DOMPoint(x, y).matrixTransform(matrix);
    };
    const back = below.slice(place).map(e => paint(e, point)).find(c => c) ?? "white";
    const style = getComputedStyle(owner);
    const ink = owner instanceof SVGElement ? style.fill : style.color;
    const found = contrast(ink, back);
    if (found < worst.contrast) Object.assign(worst, { contrast: found, text, ink, back });
  }
  scrollTo(0, 0);
  const all = document.createRange();
  all.selectNodeContents(root);
  getSelection().removeAllRanges();
  getSelection().addRange(all);
  const selected = getSelection().toString();
  getSelection().removeAllRanges();
  return { texts, worst, selected, overflow: root.scrollWidth - innerWidth };
})()
