// Tables that are wider than the window scroll; with this, by the keyboard, too.
const reach = () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset p:has(> img[src$='.svg']), math[display=block]"))
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0
      box.setAttribute("role", "group")
      box.setAttribute("aria-label", "scrolls sideways")
    }
}
addEventListener("load", () => setTimeout(reach))
addEventListener("resize", reach)
