/** How numbers are written. */

const MINUS = "−";
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

const signed = (text) => text.replaceAll("-", MINUS);

export const NONE = "–";

/** 1,234,567, and 12.3M from ten million on. */
export function count(value) {
  if (value === null || value === undefined) return NONE;
  return value < 1e7 ? whole.format(value) : short.format(value);
}

/** 1 feature, 2 features. */
export const many = (value, what) => `${count(value)} ${what}${value === 1 ? "" : "s"}`;

/** So many places that tell something at the least, and no exponent unless it is far out. */
export function number(value, places = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-6)) return signed(value.toExponential(1));
  if (size >= 100) return fixed(value, size >= 1000 ? 0 : 1);
  const zeros = size >= 0.1 || size === 0 ? 0 : -1 - Math.floor(Math.log10(size)); // 0.0012: 2
  return fixed(value, places + zeros);
}

/** The levels of an axis, in equal steps: as short as can be, and each unlike the next. */
export function labels(levels) {
  const step = levels.length > 1 ? levels[1] - levels[0] : Math.abs(levels[0]) || 1;
  const size = Math.max(...levels.map(Math.abs));
  if (size >= 1e5 || size < 1e-4) {
    const places = Math.min(6, Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9)));
    return levels.map((value) => (value === 0 ? "0" : signed(value.toExponential(places))));
  }
  let places = 0;
  while (places < 9 && Math.abs(step * 10 ** places - Math.round(step * 10 ** places)) > 1e-6) {
    places += 1;
  }
  return levels.map((value) => fixed(value, places));
}

/** As short as it can be said: 0, 4, 0.25. */
export const plain = (value) => signed(String(Number(value.toPrecision(4))));

/** So many places, whatever its size: for columns that have one scale. */
export function fixed(value, places) {
  const [units, rest] = value.toFixed(places).split(".");
  const grouped = units.replace(/\B(?=(\d{3})+$)/g, ",");
  const text = rest === undefined ? grouped : `${grouped}.${rest}`;
  return signed(text.replace(/^-(0\.?0*)$/, "$1"));
}

/** Places that tell numbers of up to this size apart. */
export const placesFor = (size) =>
  Math.min(9, Math.max(2, 1 - Math.floor(Math.log10(Math.max(size, 1e-9)))));

/** How to write the numbers of one column: alike, and apart where they differ, within reason. */
export function column(values) {
  const known = values.filter((value) => Number.isFinite(value));
  const size = Math.max(0, ...known.map(Math.abs));
  if (size >= 1e6 || (size > 0 && size < 1e-6)) {
    return (value) => (Number.isFinite(value) ? signed(value.toExponential(2)) : NONE);
  }
  const least = size >= 1000 ? 0 : size >= 100 ? 1 : Math.max(3, size ? placesFor(size) + 1 : 0);
  const told = (places) => new Set(known.map((value) => fixed(value, places))).size;
  let places = least;
  while (places < least + 3 && told(places) < new Set(known).size) places += 1;
  return (value) => (Number.isFinite(value) ? fixed(value, places) : NONE);
}

/** An error's text as a sentence. */
export const sentence = (text) => (/[.!?…]$/.test(text) ? text : `${text}.`);

export function rate(value) {
  if (value === null || value === undefined) return NONE;
  return value >= 1000 ? whole.format(value) : value.toFixed(1);
}

export function percent(share, places = 1) {
  if (share === null || share === undefined || !Number.isFinite(share)) return NONE;
  return `${(100 * share).toFixed(places)} %`;
}

export function seconds(value) {
  if (value === null || value === undefined) return NONE;
  if (value < 60) return `${value.toFixed(value < 10 ? 1 : 0)} s`;
  return value < 3600 ? `${(value / 60).toFixed(0)} min` : `${(value / 3600).toFixed(1)} h`;
}

/** A length of time that somebody has set: 4 s, 10 min. */
export function span(value) {
  const units = [
    ["h", 3600],
    ["min", 60],
  ];
  const [unit, size] = units.find(([, long]) => value > 0 && value % long === 0) ?? ["s", 1];
  return `${plain(value / size)} ${unit}`;
}

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit += 1) value /= 1000;
  return `${value.toFixed(unit && value < 10 ? 1 : 0)} ${units[unit]}`;
}

const clock = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

/** Of an epoch in seconds, in the reader's own time zone. */
export const time = (at) => clock.format(at * 1000);
export const timeShort = (at) => time(at).slice(0, 5);

/** The name of a feature, or its position where it has none. */
export const featureName = (names, place) => names?.[place] ?? `x${place}`;
