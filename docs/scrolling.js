// Tables, pictures and formulas that are wider than the window scroll; with this, by the keyboard, too.
const WIDE = ".md-typeset__scrollwrap, .md-typeset p:has(> img[src$='.svg']), math[display=block]"
const reach = () => {
  for (const box of document.querySelectorAll(WIDE))
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0
      if (box.localName !== "math") box.setAttribute("role", "group")
    }
}
addEventListener("load", () => setTimeout(reach))
addEventListener("resize", reach)
