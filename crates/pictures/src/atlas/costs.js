// Costs that the reader chooses, by number or on a logarithmic scale: ten steps for a factor of ten.
// They are the last parts of the address, behind what is shown.
const costs = { alpha: 200, beta: 1 };
const address = () => decodeURIComponent(location.hash.slice(1)).split("/");
const showCosts = () => {
  for (const name of ["alpha", "beta"]) {
    element(name).value = costs[name];
    element(name + "-range").value = Math.round(10 * Math.log10(costs[name] || 1e-9));
  }
};
// The parts of an address before its costs, of which there are `count`.
const readAddress = count => {
  const parts = address(), numbers = parts.slice(count, count + 2).map(Number);
  if (numbers.length === 2 && numbers.every(n => n >= 0 && n <= 1e9)) [costs.alpha, costs.beta] = numbers;
  showCosts();
  return parts.slice(0, count);
};
const addressOf = parts => "#" + [...parts, costs.alpha, costs.beta].join("/");
// Calls `changed` when the reader changes a cost.
const onCosts = changed => {
  for (const name of ["alpha", "beta"]) {
    const take = value => {
      if (!(value >= 0 && value <= 1e9)) return;
      costs[name] = value;
      changed();
    };
    element(name).onchange = event => { take(event.target.value === "" ? NaN : +event.target.value); showCosts(); };
    element(name + "-range").oninput = event => {
      take(+(10 ** (event.target.value / 10)).toPrecision(2));
      element(name).value = costs[name];
    };
  }
};
const worth = lines => lines.reduce((most, [a, b]) => Math.max(most, a * costs.alpha + b * costs.beta), 0);
