// What every script of a page with packed data begins with.
const element = id => document.getElementById(id);
const inflated = text => {
  const packed = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate")));
};
const unpack = text => inflated(text).json();
