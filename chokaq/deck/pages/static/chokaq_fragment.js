// Draws a tree of nodes (chokaq/deck/pages/nodes.py) and tells the server what was clicked, changed or submitted.
import { h, ref } from "vue";

const now = ref(Date.now());
setInterval(() => (now.value = Date.now()), 1000);

const WORDS = [
  [86400000, "d", 3600000, "h"],
  [3600000, "h", 60000, "min"],
  [60000, "min", 1000, "s"],
];

function span(ms) {
  if (ms < 1000) return "0 s";
  for (const [big, bigWord, small, smallWord] of WORDS) {
    if (ms >= big) {
      const rest = Math.floor((ms % big) / small);
      return Math.floor(ms / big) + " " + bigWord + (rest && ms < 10 * big ? " " + rest + " " + smallWord : "");
    }
  }
  return Math.floor(ms / 1000) + " s";
}

const two = (n) => String(n).padStart(2, "0");
const day = (d) => d.getFullYear() + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate());
const clock = (d) => two(d.getHours()) + ":" + two(d.getMinutes()) + ":" + two(d.getSeconds());
const local = (ms) => day(new Date(ms)) + " " + clock(new Date(ms));
const utc = (ms) => new Date(ms).toISOString().replace("T", " ").replace("Z", " UTC");
const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

const When = {
  props: { ms: Number, mode: String },
  render() {
    const at = this.ms;
    const distance = now.value + (window.chokaqSkew || 0) - at;
    let text;
    if (this.mode === "ago") text = distance < -1500 ? "in " + span(-distance) : distance < 1000 ? "just now" : span(distance) + " ago";
    else if (this.mode === "age") text = span(Math.max(distance, 0));
    else if (this.mode === "clock") text = day(new Date(at)) === day(new Date(now.value)) ? clock(new Date(at)) : local(at);
    else text = local(at);
    return h("time", { datetime: new Date(at).toISOString(), title: local(at) + " " + zone() + "\n" + utc(at) }, text);
  },
};

function fieldValue(field) {
  if (field.type === "checkbox") return field.checked;
  if (field.type === "datetime-local") return field.value ? new Date(field.value).getTime() : null;
  return field.value;
}

function formValue(form, submitter) {
  const values = {};
  for (const field of form.elements) {
    if (field.name && (!["submit", "button"].includes(field.type) || field === submitter)) values[field.name] = fieldValue(field);
  }
  return values;
}

function setInitial(field, value) {
  if (field.type === "datetime-local") {
    const at = value === "" || value === null ? null : new Date(Number(value));
    field.value = at ? day(at) + "T" + clock(at).slice(0, 5) : "";
  } else field.value = value;
}

// A dialog takes the focus when it opens; whoever has begun to fill in another field keeps it.
function focusUnlessTyping(field) {
  if (!/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName)) field.focus();
}

function build(node, tell) {
  if (typeof node === "string") return node;
  const [name, attributes, children] = node;
  if (name === "when") return h(When, { key: attributes.key, ms: attributes.ms, mode: attributes.mode });
  const props = {};
  for (const [key, value] of Object.entries(attributes)) {
    if (!["act", "initial", "live", "focus"].includes(key)) props[key] = value;
  }
  if ("data-submit" in attributes) props.onChange = (e) => e.target.form && e.target.form.requestSubmit();
  const act = attributes.act;
  if (act) {
    if (name === "form") props.onSubmit = (e) => (e.preventDefault(), tell([act, formValue(e.target, e.submitter)]));
    else if (["input", "select", "textarea"].includes(name)) {
      if (attributes.live) props.onInput = (e) => tell([act, fieldValue(e.target)]);
      else props.onChange = (e) => tell([act, e.target.type === "checkbox" && "value" in attributes ? attributes.value : fieldValue(e.target)]);
      if (name === "input" && attributes.type === "checkbox") props.onClick = (e) => e.stopPropagation();
    } else props.onClick = (e) => (e.preventDefault(), tell([act, attributes.value ?? null]));
  }
  if ("initial" in attributes) {
    props.onVnodeMounted = (vnode) => setInitial(vnode.el, attributes.initial);
    props.onVnodeUpdated = (vnode, old) => {
      if (old.initialValue !== attributes.initial && document.activeElement !== vnode.el) setInitial(vnode.el, attributes.initial);
    };
  }
  if (attributes.focus) {
    const mounted = props.onVnodeMounted;
    props.onVnodeMounted = (vnode) => (mounted && mounted(vnode), setTimeout(() => focusUnlessTyping(vnode.el), 60));
  }
  const vnode = h(name, props, children.length ? children.map((child) => build(child, tell)) : undefined);
  vnode.initialValue = attributes.initial;
  return vnode;
}

export default {
  props: { tree: Array },
  render() {
    return h("div", { class: "fragment" }, (this.tree || []).map((node) => build(node, (told) => this.$emit("act", told))));
  },
};
