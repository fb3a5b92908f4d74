
// -- the page: numbers as text, and back -----------------------------------------------------------
const RANGES = { int8: [-128, 127], uint8: [0, 255], int16: [-32768, 32767], uint16: [0, 65535],
  int32: [-2147483648, 2147483647], uint32: [0, 4294967295],
  int64: [-(2n ** 63n), 2n ** 63n - 1n], uint64: [0n, 2n ** 64n - 1n] };
const SMALL_FLOATS = { float16: [5, 10], bfloat16: [8, 7] };  // bits of the exponent and of the fraction
const NUMBER = String.raw`(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)`;
const FLOAT_WORD = new RegExp(`^[+-]?${NUMBER}$`, "i");
const COMPLEX_WORD = new RegExp(`^([+-]?${NUMBER}(?=[+-]))?([+-]?(?:${NUMBER})?)[ij]$`, "i");
const LEAST_IMAGE = 8, MOST_IMAGE = 2048, OPEN_IMAGE = 64, MOST_BARS = 64, MOST_ROWS = 24, PAPER = 256;
const MOST_WRITTEN = 100000;  // elements of a drawing that are written as text

/** The bits of a 16-bit float: the nearest one, of two the even one. */
function smallBits(x, [exponentBits, fractionBits]) {
  const least = 2 - 2 ** (exponentBits - 1), infinity = (2 ** exponentBits - 1) * 2 ** fractionBits;
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0, size = Math.abs(x);
  if (Number.isNaN(x)) return infinity + 2 ** (fractionBits - 1);
  if (size === Infinity) return sign + infinity;
  const words = new DataView(new ArrayBuffer(8));
  words.setFloat64(0, size);
  const exponent = Math.max(((words.getUint16(0) >> 4) & 0x7ff) - 1023, least);
  const steps = size / 2 ** (exponent - fractionBits), below = Math.floor(steps), rest = steps - below;
  const rounded = below + (rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? 1 : 0);
  return sign + Math.min(rounded + (exponent - least) * 2 ** fractionBits, infinity);
}

/** The value of the bits of a 16-bit float. */
function smallValue(bits, [exponentBits, fractionBits]) {
  const sign = bits & 0x8000 ? -1 : 1, most = 2 ** exponentBits - 1;
  const exponent = (bits >> fractionBits) & most, fraction = bits & (2 ** fractionBits - 1);
  if (exponent === most) return fraction ? NaN : sign * Infinity;
  const least = 2 - 2 ** (exponentBits - 1) - fractionBits;
  return sign * (exponent ? (fraction + 2 ** fractionBits) * 2 ** (exponent - 1 + least) : fraction * 2 ** least);
}

function floatOf(word) {
  if (!FLOAT_WORD.test(word)) throw new TypeError(`"${word}" is no number`);
  const low = word.toLowerCase();
  if (low.includes("nan")) return NaN;
  return low.includes("inf") ? (low.startsWith("-") ? -Infinity : Infinity) : Number(word);
}

/** The numbers that stand for one element: two for complex ones. */
function element(word, dtype) {
  if (dtype === "bool") {
    const at = ["false", "0", "true", "1"].indexOf(word.toLowerCase());
    if (at < 0) throw new TypeError(`"${word}" is neither true nor false`);
    return [at >> 1];
  }
  if (dtype.startsWith("complex")) {
    const parts = COMPLEX_WORD.exec(word);
    if (!parts) return [floatOf(word), 0];
    return [parts[1] ? floatOf(parts[1]) : 0, floatOf(/[\w.]/.test(parts[2]) ? parts[2] : `${parts[2]}1`)];
  }
  if (dtype in RANGES) {
    if (!/^[+-]?\d+$/.test(word)) throw new TypeError(`"${word}" is no integer`);
    const [low, high] = RANGES[dtype], value = typeof low === "bigint" ? BigInt(word) : Number(word);
    if (value < low || value > high) throw new RangeError(`${word} is out of the range of ${dtype}`);
    return [value];
  }
  return [dtype in SMALL_FLOATS ? smallBits(floatOf(word), SMALL_FLOATS[dtype]) : floatOf(word)];
}

/** The shape of lists within one another, all of whose elements must be alike; appends what is innermost to `words`. */
function flattened(value, words) {
  if (!Array.isArray(value)) {
    words.push(String(value));
    return [];
  }
  const shapes = value.map((child) => flattened(child, words));
  if (shapes.some((shape) => String(shape) !== String(shapes[0]) || shape.length !== shapes[0].length)) {
    throw new TypeError("lists beside one another must have equal lengths");
  }
  return [value.length, ...(shapes[0] ?? [])];
}

/** The tensor that a text says: lists in brackets, or a row in each line. */
function parsed(text, { array, dtype, shape: wanted, each }) {
  let words = [], shape;
  if (text.includes("[")) {
    const quoted = text.replace(/[^\s,[\]]+/g, JSON.stringify).replace(/(["\]])(\s+)(?=["[])/g, "$1,");
    let lists;
    try {
      lists = JSON.parse(quoted);
    } catch {
      throw new TypeError("brackets or commas do not match");
    }
    shape = flattened(lists, words);
  } else {
    const rows = text.split("\n").map((line) => line.split(/[\s,;]+/).filter((word) => word));
    const lines = rows.filter((row) => row.length);
    words = lines.flat();
    if (wanted.every((size) => typeof size === "number") && words.length === count(wanted)) shape = wanted;
    else if (wanted.length === 1) shape = [words.length];
    else if (wanted.length === 2) shape = flattened(lines, []);
    else if (wanted.length === 0) throw new TypeError("give one value");
    else throw new TypeError(`give lists within one another, in brackets, ${wanted.length} deep`);
  }
  if (shape.length !== wanted.length) {
    throw new TypeError(`give ${wanted.length} dimensions; these are ${shape.length}`);
  }
  const data = new globalThis[array](words.length * each);
  words.forEach((word, n) => element(word, dtype).forEach((value, part) => { data[n * each + part] = value; }));
  return { data, shape };
}

/** The numbers of a tensor: for 16-bit floats their values. */
function numbersOf({ dtype }, data) {
  return dtype in SMALL_FLOATS ? Float32Array.from(data, (bits) => smallValue(bits, SMALL_FLOATS[dtype])) : data;
}

/** A number for reading, in six digits at most where it is a fraction. */
function short(x) {
  if (typeof x === "bigint" || Number.isInteger(x)) return String(x);
  return String(Number(x.toPrecision(6))).replace("Infinity", "inf").replace("NaN", "nan");
}

/** The shortest text of which `floatOf` makes the same number, in float32 where `isSingle`. */
function exact(x, isSingle) {
  if (typeof x === "bigint") return String(x);
  if (Object.is(x, -0)) return "-0";
  if (!Number.isFinite(x)) return short(x);
  for (let digits = 1; isSingle && digits < 9; digits++) {
    const tried = Number(x.toPrecision(digits));
    if (Math.fround(tried) === x) return String(tried);
  }
  return String(isSingle ? Number(x.toPrecision(9)) : x);
}

/** The text of element `n`; `form` writes a number. */
function shown(member, numbers, n, form = short) {
  if (member.dtype === "bool") return numbers[n] ? "true" : "false";
  const isSingle = numbers instanceof Float32Array;
  if (member.each === 1) return form(numbers[n], isSingle);
  const imaginary = form(numbers[2 * n + 1], isSingle);
  return `${form(numbers[2 * n], isSingle)}${imaginary.startsWith("-") ? "" : "+"}${imaginary}i`;
}

/** A text that `parsed` makes the same tensor of. */
function written(member, { data, shape }) {
  const numbers = numbersOf(member, data);
  const words = Array.from({ length: count(shape) }, (_, n) => shown(member, numbers, n, exact));
  const joined = (parts, each, form) => Array.from({ length: each ? parts.length / each : 0 },
    (_, n) => form(parts.slice(n * each, (n + 1) * each)));
  if (shape.length < 2) return words.join(", ");
  const rows = joined(words, shape.at(-1), (row) => row.join(", "));
  if (shape.length === 2) return rows.join("\n");
  const outer = shape.slice(0, -1).reverse();
  return outer.reduce((parts, size) => joined(parts, size, (part) => `[${part.join(",\n")}]`),
    rows.map((row) => `[${row}]`))[0];
}

// -- images ----------------------------------------------------------------------------------------
const isFloat = (dtype) => dtype.includes("float");

/**
 * The image that a tensor looks like; null for none: its channels, its height and width, null where any size will do,
 * the axis of its height, and whether it is sooner one than numbers.
 */
function imageOf({ dtype, shape }) {
  if (!isFloat(dtype) && !(dtype in RANGES)) return null;
  const isOpen = (size) => typeof size === "string", isChannels = (size) => size === 1 || size === 3 || size === 4;
  const isOne = (size) => size === 1 || isOpen(size);
  const flat = shape.length === 2 || (shape.length === 3 && isOne(shape[0]) && !isChannels(shape[2]));
  const axis = shape.length === 4 || (flat && shape.length === 3) ? 1 : 0;
  const [height, width, channels] = flat ? [...shape.slice(axis), 1] : shape.slice(axis);
  if (shape.length < 2 || shape.length > 4 || (axis && !isOne(shape[0])) || !isChannels(channels)) return null;
  const fits = (size) => (isOpen(size) ? !flat : size >= LEAST_IMAGE && size <= MOST_IMAGE);
  if (!fits(height) || !fits(width)) return null;
  const known = (size) => (isOpen(size) ? null : size), whole = !isOpen(height) && !isOpen(width);
  return { height: known(height), width: known(width), channels, axis, likely: whole || shape.length === 4 };
}

/** What a tensor's elements are for black and for white, the likeliest first. */
function scales({ dtype }, { channels }) {
  const dark = isFloat(dtype) ? [1, 0] : [255, 0], light = [dark[1], dark[0]];
  const pairs = channels === 1 ? [dark, light] : [light, dark];
  return isFloat(dtype) ? [...pairs, [0, 255], [-1, 1]] : pairs;
}

/** The tensor of a picture of `times` as many pixels each way, as bytes of red, green, blue and alpha. */
function imageTensor(member, { height, width, channels, axis }, pixels, times, [black, white]) {
  const data = new globalThis[member.array](height * width * channels), row = width * times * 4;
  for (let y = 0, at = 0; y < height; y++) for (let x = 0; x < width; x++) {
    const sums = [0, 0, 0, 0];
    for (let v = 0; v < times; v++) for (let u = 0; u < times; u++) {
      const from = (y * times + v) * row + (x * times + u) * 4;
      for (let c = 0; c < 4; c++) sums[c] += pixels[from + c];
    }
    const gray = (299 * sums[0] + 587 * sums[1] + 114 * sums[2]) / 1000;  // of whole numbers, so that white is white
    for (const sum of channels === 1 ? [gray] : sums.slice(0, channels)) {
      const value = black + (white - black) * sum / (255 * times * times);
      if (member.dtype in SMALL_FLOATS) data[at++] = smallBits(value, SMALL_FLOATS[member.dtype]);
      else if (isFloat(member.dtype)) data[at++] = value;
      else data[at++] = member.array.startsWith("Big") ? BigInt(Math.round(value)) : Math.round(value);
    }
  }
  const shape = member.shape.map((size) => (typeof size === "string" ? 1 : size));
  [shape[axis], shape[axis + 1]] = [height, width];
  return { data, shape };
}

// -- elements --------------------------------------------------------------------------------------
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value !== null) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}
const spoken = (name) => name.replaceAll("_", " ");
const kindOf = ({ dtype, shape }) => `${dtype}${shape.length ? ` [${shape.join(", ")}]` : ""}`;
let ids = 0;

/** A control for an input: elements for the page, and `tensor()`, which gives what is entered or throws. */
function control(member, changed) {
  const id = `input-${++ids}`, image = imageOf(member);
  const label = el("h3", { id: `${id}-name` }, spoken(member.name), " ", el("span", { class: "kind" }, kindOf(member)));
  const wrong = el("p", { class: "wrong", id: `${id}-wrong` });
  const numbers = entry(member, id, changed), paper = image ? drawing(member, image, id, changed) : null;
  const ways = !paper ? [numbers] : image.likely ? [paper, numbers] : [numbers, paper];
  let way = ways[0];
  const part = el("div", { class: "part", role: "group", "aria-labelledby": `${id}-name` }, label);
  if (ways.length > 1) {
    ways[1].element.hidden = true;
    const choice = el("select", { "aria-label": `How to give ${spoken(member.name)}`, change: () => {
      way = ways[choice.selectedIndex];
      const drawn = way === numbers ? paper.tensor() : null;
      if (drawn && drawn.data.length <= MOST_WRITTEN) numbers.take(drawn);
      ways.forEach((each) => { each.element.hidden = each !== way; });
      changed();
    } }, ...ways.map((each) => el("option", {}, each === paper ? "Draw, or choose a picture" : "Enter numbers")));
    part.append(choice);
  }
  part.append(...ways.map((each) => each.element), wrong);
  return { part, tensor() {
    try {
      const tensor = way.tensor();
      wrong.textContent = "";
      way.focus.setAttribute("aria-invalid", "false");
      return tensor;
    } catch (error) {
      wrong.textContent = error.message;
      way.focus.setAttribute("aria-invalid", "true");
      throw error;
    }
  } };
}

/** Numbers and truth values as text, or as a box to tick. */
function entry(member, id, changed) {
  const described = { id, "aria-labelledby": `${id}-name`, "aria-describedby": `${id}-wrong` };
  if (member.dtype === "bool" && member.rank === 0) {
    const box = el("input", { ...described, type: "checkbox", change: changed });
    return { element: box, focus: box, tensor: () => ({ data: new Uint8Array([box.checked ? 1 : 0]), shape: [] }) };
  }
  const open = (axis) => (axis === 0 && member.rank > 1 ? 1 : 3);  // a batch of one; of others something to see
  const shape = member.shape.map((size, axis) => (typeof size === "number" ? size : open(axis)));
  const blank = { data: new globalThis[member.array](count(shape) * member.each), shape };
  const field = member.rank === 0 ? el("input", { ...described, type: "text", inputmode: "decimal", autocomplete: "off",
    input: changed }) : el("textarea", { ...described, rows: 5, spellcheck: "false", input: changed });
  field.value = written(member, blank);
  const fill = (next) => () => {
    let last = blank;
    try {
      last = parsed(field.value, member);
    } catch { /* what is there says no shape, so the first one does */ }
    field.value = written(member, { shape: last.shape, data: last.data.map(next) });
    changed();
  };
  const draw = () => {
    if (member.dtype === "bool") return Math.random() < 0.5 ? 1 : 0;
    if (member.dtype in RANGES) return member.array.startsWith("Big") ? BigInt(Math.floor(Math.random() * 10))
      : Math.floor(Math.random() * 10);
    const x = Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
    const rounded = Number(x.toPrecision(4));
    return member.dtype in SMALL_FLOATS ? smallBits(rounded, SMALL_FLOATS[member.dtype]) : rounded;
  };
  const zero = member.array.startsWith("Big") ? 0n : 0;
  const tools = member.rank === 0 ? [] : [el("div", { class: "tools" },
    el("button", { type: "button", click: fill(() => zero) }, "Zeros"),
    el("button", { type: "button", click: fill(draw) }, "Random"),
    el("span", { class: "hint" }, member.rank === 1 ? "Numbers between commas or spaces"
      : "A row in each line, or lists in brackets"))];
  return { element: el("div", {}, field, ...tools), focus: field, tensor: () => parsed(field.value, member),
    take(tensor) { field.value = written(member, tensor); } };
}

/** Paper to draw on with a mouse, a pen or a finger, or to put a picture on, which says the sizes that are open. */
function drawing(member, image, id, changed) {
  const paper = el("canvas", { class: "paper", role: "img", "aria-label": `${spoken(member.name)}: draw here` });
  const pen = paper.getContext("2d", { willReadFrequently: true });
  const options = scales(member, image), size = { ...image };
  let times = 1;
  const scale = el("select", { change: changed }, ...options.map(([black, white]) =>
    el("option", {}, `black ${black}, white ${white}`)));
  const thick = el("input", { type: "range", min: 1, max: 25, value: 10, "aria-label": "Width of the pen" });
  const color = el("input", { type: "color", value: "#000000", "aria-label": "Color of the pen" });
  const clear = () => {
    pen.fillStyle = "#ffffff";
    pen.fillRect(0, 0, paper.width, paper.height);
  };
  const lay = (height, width) => {  // new paper; what is known of its sizes stays
    Object.assign(size, { height: image.height ?? height, width: image.width ?? width });
    times = Math.max(1, Math.ceil(PAPER / Math.max(size.height, size.width)));
    [paper.width, paper.height] = [size.width * times, size.height * times];
    lengths.forEach(([name, field]) => { field.value = size[name]; });
    clear();
  };
  const put = (picture) => {  // as large as fits, in the middle
    const by = Math.min(paper.width / picture.width, paper.height / picture.height);
    const [w, h] = [picture.width * by, picture.height * by];
    pen.imageSmoothingEnabled = by !== times;  // pixels of the picture that are those of the tensor stay as they are
    pen.drawImage(picture, (paper.width - w) / 2, (paper.height - h) / 2, w, h);
    changed();
  };
  const lengths = ["height", "width"].filter((name) => image[name] === null).map((name) => [name, el("input", {
    type: "number", min: 1, max: MOST_IMAGE, "aria-label": `${name} in pixels`, change: async () => {
      const drawn = await createImageBitmap(paper), wanted = Object.fromEntries(lengths.map(([each, { value }]) =>
        [each, Math.min(Math.max(Math.round(Number(value)) || 1, 1), MOST_IMAGE)]));
      lay(wanted.height, wanted.width);
      put(drawn);
    } })]);
  const file = el("input", { type: "file", accept: "image/*", hidden: "", change: async () => {
    if (!file.files.length) return;
    const picture = await createImageBitmap(file.files[0]);
    const by = Math.min(1, MOST_IMAGE / Math.max(picture.height, picture.width));
    lay(...[picture.height, picture.width].map((each) => Math.max(1, Math.round(each * by))));
    file.value = "";
    put(picture);
  } });
  strokes(paper, pen, (ink) => {
    ink.strokeStyle = color.value;
    ink.lineWidth = Math.max(paper.width, paper.height) * thick.valueAsNumber / 100;
  }, changed);
  lay(OPEN_IMAGE, OPEN_IMAGE);
  const tools = el("div", { class: "tools" },
    el("button", { type: "button", click: () => { clear(); changed(); } }, "Clear"),
    el("button", { type: "button", click: () => file.click() }, "Picture\u2026"), file,
    el("label", {}, "Pen", thick), ...(image.channels > 1 ? [color] : []), el("label", {}, "Values", scale),
    ...lengths.map(([name, field]) => el("label", {}, name === "height" ? "Height" : "Width", field)));
  return { element: el("div", {}, paper, tools), focus: paper, tensor: () => imageTensor(member, size,
    pen.getImageData(0, 0, paper.width, paper.height).data, times, options[scale.selectedIndex]) };
}

/** Lets pointers draw lines on a canvas. */
function strokes(paper, pen, prepare, changed) {
  const last = new Map();  // where each pointer was
  const place = (event) => {
    const box = paper.getBoundingClientRect();
    return [(event.clientX - box.x) * paper.width / box.width, (event.clientY - box.y) * paper.height / box.height];
  };
  const draw = (event) => {
    prepare(pen);
    pen.lineCap = pen.lineJoin = "round";
    pen.beginPath();
    pen.moveTo(...last.get(event.pointerId));
    const between = event.getCoalescedEvents?.() ?? [];
    for (const each of between.length ? between : [event]) pen.lineTo(...place(each));
    pen.stroke();
    last.set(event.pointerId, place(event));
    changed();
  };
  paper.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    paper.setPointerCapture(event.pointerId);
    last.set(event.pointerId, place(event));
    draw(event);
  });
  paper.addEventListener("pointermove", (event) => { if (last.has(event.pointerId)) draw(event); });
  for (const kind of ["pointerup", "pointercancel"]) {
    paper.addEventListener(kind, (event) => last.delete(event.pointerId));
  }
}

// -- results ---------------------------------------------------------------------------------------
/** A place for a result: an element, and `show(tensor)`, which says in words what it shows. */
function result(member) {
  const body = el("div");
  const part = el("div", { class: "part" }, el("h3", {}, spoken(member.name), " ",
    el("span", { class: "kind" }, kindOf(member))), body);
  let bars = null;
  return { part, show({ data, shape }) {
    const numbers = numbersOf(member, data), sizes = shape.filter((size) => size !== 1);
    const plain = member.each === 1 && member.dtype !== "bool";
    if (sizes.length === 1 && sizes[0] > 0 && sizes[0] <= MOST_BARS && plain) {
      if (bars?.length !== sizes[0]) {
        bars = barsOf(sizes[0]);
        body.replaceChildren(bars.element);
      }
      return `${spoken(member.name)}: ${bars.show(Array.from(numbers, Number), isFloat(member.dtype))}`;
    }
    bars = null;
    if (count(shape) === 1) {
      const text = shown(member, numbers, 0);
      body.replaceChildren(el("div", { class: "number" }, text));
      return `${spoken(member.name)}: ${text}`;
    }
    const image = imageOf({ ...member, shape }), open = body.querySelector("details")?.open;
    const seen = image ? picture(image, numbers) : sizes.length === 1 && plain && count(shape) ? line(numbers) : null;
    const elements = table(member, shape, numbers);
    const folded = el("details", { open: open ? "" : null }, el("summary", {}, "Numbers"), elements);
    body.replaceChildren(...(seen ? [seen, folded] : [elements]));
    return `${spoken(member.name)}: a table of ${count(shape)} elements`;
  } };
}

/** Bars from zero, of which the longest is marked. */
function barsOf(length) {
  const rows = Array.from({ length }, (_, n) => {
    const bar = el("div"), value = el("span", { class: "value" });
    const track = el("div", { class: "track", "aria-hidden": "true" }, bar);
    return { bar, value, row: el("li", {}, el("span", {}, String(n)), track, value) };
  });
  const element = el("ol", { class: "bars" }, ...rows.map(({ row }) => row));
  return { element, length, show(values, floats) {
    const finite = values.filter(Number.isFinite), low = Math.min(0, ...finite), most = Math.max(...finite);
    const shares = floats && values.every((x) => x >= 0 && x <= 1)
      && Math.abs(values.reduce((a, b) => a + b, 0) - 1) < 1e-3;
    const high = shares ? 1 : Math.max(0, most) || (low < 0 ? 0 : 1), range = high - low || 1;
    const text = (x) => (shares ? `${(100 * x).toFixed(1)} %` : short(x));
    const only = finite.length > 1 && values.filter((x) => x === most).length === 1;
    rows.forEach(({ bar, value, row }, n) => {
      const x = Math.min(Math.max(Number.isNaN(values[n]) ? 0 : values[n], low), high);
      bar.style.left = `${100 * (Math.min(x, 0) - low) / range}%`;
      bar.style.width = `${100 * Math.abs(x) / range}%`;
      value.textContent = text(values[n]);
      row.classList.toggle("most", only && values[n] === most);
    });
    return only ? `most at ${values.indexOf(most)}, ${text(most)}` : "no single largest";
  } };
}

/** The least and the largest of the finite numbers. */
function ends(values) {
  return values.filter(Number.isFinite).reduce(([low, high], x) => [Math.min(low, x), Math.max(high, x)],
    [Infinity, -Infinity]);
}

/** A curve through the elements of a long list. */
function line(numbers) {
  const values = Array.from(numbers, Number), [low, high] = ends(values);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const curve = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  svg.setAttribute("viewBox", "0 0 1000 100");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  curve.setAttribute("points", values.map((y, x) => [y, x]).filter(([y]) => Number.isFinite(y)).map(([y, x]) =>
    `${1000 * x / (values.length - 1)},${95 - 90 * (y - low) / (high - low || 1)}`).join(" "));
  svg.append(curve);
  return svg;
}

/** A picture of an image's elements, the least of them black and the largest white. */
function picture({ height, width, channels }, numbers) {
  const made = el("canvas", { class: "picture", width, height, "aria-hidden": "true" });
  const pixels = new ImageData(width, height), [low, high] = ends(Array.from(numbers, Number));
  for (let n = 0; n < height * width; n++) for (let c = 0; c < 4; c++) {
    const from = channels === 1 ? n : n * channels + c;
    pixels.data[4 * n + c] = c === 3 ? 255 : 255 * (Number(numbers[from]) - low) / (high - low || 1);
  }
  made.getContext("2d").putImageData(pixels, 0, 0);
  return made;
}

/** The elements as a table, rows by the last axis; of many, the first ones. */
function table(member, shape, numbers) {
  const columns = shape.length ? shape[shape.length - 1] : 1, rows = columns ? count(shape) / columns : 0;
  const made = el("table");
  for (let row = 0; row < Math.min(rows, MOST_ROWS); row++) {
    const place = [];
    for (let axis = shape.length - 2, rest = row; axis >= 0; axis--) {
      place.unshift(rest % shape[axis]);
      rest = Math.floor(rest / shape[axis]);
    }
    const cells = Array.from({ length: Math.min(columns, MOST_ROWS) }, (_, column) =>
      el("td", {}, shown(member, numbers, row * columns + column)));
    made.append(el("tr", {}, ...(place.length ? [el("th", { scope: "row" }, place.join(", "))] : []), ...cells));
  }
  const left = rows > MOST_ROWS || columns > MOST_ROWS;
  const note = !count(shape) ? "no elements" : left ? `the first of ${shape.join(" by ")}` : "";
  const scrolled = { class: "table", tabindex: 0, role: "group", "aria-label": spoken(member.name) };
  return el("div", scrolled, made, el("p", { class: "hint" }, note));
}

// -- functions -------------------------------------------------------------------------------------
/** A section for a function, which runs at each change if it has no variables to assign, else when it is asked to. */
function section(name, fn, loaded, variables) {
  let waiting = false, telling = 0;
  const failed = el("p", { class: "wrong", role: "alert" }), time = el("p", { class: "time" });
  const heard = el("p", { class: "heard", "aria-live": "polite" });
  const results = fn.outputs.map(result);
  const run = () => {
    waiting = false;
    try {
      const inputs = {};
      for (const [n, each] of controls.entries()) inputs[fn.inputs[n].name] = each.tensor();
      const began = performance.now(), found = loaded[name](inputs, variables?.state);
      const took = performance.now() - began;
      const said = fn.outputs.map((member, n) => results[n].show(found[member.name]));
      failed.textContent = "";
      const by = loaded.threads > 1 ? ` on ${loaded.threads} threads` : "";
      time.textContent = `ran in ${took < 1 ? took.toFixed(2) : took.toPrecision(3)} ms${by}`;
      clearTimeout(telling);
      telling = setTimeout(() => { heard.textContent = said.join("; "); }, 700);
      variables?.show();
    } catch (error) {
      failed.textContent = error instanceof NativeError ? error.message : `${name} did not run: ${error.message}`;
    }
  };
  const changed = () => {
    if (fn.state || waiting) return;
    waiting = true;
    requestAnimationFrame(run);
  };
  const controls = fn.inputs.map((member) => control(member, changed));
  const button = el("button", { type: "button", class: "run", click: run }, "Run");
  button.hidden = !fn.state;
  const made = el("section", { "aria-label": name }, el("h2", {}, fn.title), el("div", { class: "columns" },
    el("div", {}, ...controls.map(({ part }) => part), button, failed),
    el("div", {}, ...results.map(({ part }) => part), time, heard)));
  changed();
  return made;
}

/** The section with the values of the variables that functions assign. */
function variablesOf(loaded) {
  const places = library.state.map(result);
  const made = { state: loaded.newState(), show() {
    const values = made.state.values();
    library.state.forEach(({ name }, n) => places[n].show(values[name]));
  } };
  const again = () => {
    made.state = loaded.newState();
    made.show();
  };
  made.element = el("section", { "aria-label": "variables" }, el("h2", {}, "Variables"),
    ...places.map(({ part }) => part), el("button", { type: "button", click: again }, "Start again"));
  made.show();
  return made;
}

/** The bytes that a page holds: deflated, in base64. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function start() {
  const place = document.getElementById("functions");
  try {
    const loaded = await load(await unpacked(document.getElementById("code").textContent));
    const variables = library.state.length ? variablesOf(loaded) : null;
    place.append(...Object.entries(library.functions).map(([name, fn]) => section(name, fn, loaded, variables)));
    if (variables) place.append(variables.element);
  } catch (error) {
    document.getElementById("failure").textContent = `This browser cannot run the page: ${error.message}`;
  }
  place.setAttribute("aria-busy", "false");
}

export { imageOf, imageTensor, parsed, scales, smallBits, smallValue, unpacked, written };
if (typeof document !== "undefined") start();
