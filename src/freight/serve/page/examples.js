// Example pairs, written for this page.

export const EXAMPLES = [
  {
    hyp: "The young boy wore a red coat in the rain.",
    refs: ["The old man walked through the rain in a slicker."],
  },
  {
    hyp: "The dog bit the postman.",
    refs: ["The postman bit the dog."],
    other: "A dog attacked the man who brings the letters.",
  },
  {
    hyp: "The museum opens at nine and entry is free on Sundays.",
    refs: ["On Sundays nobody pays to get into the museum.", "The museum is open from nine; it costs nothing on Sundays."],
  },
  {
    hyp: "Sales rose sharply in spring, and the board thanked its chairman at length.",
    refs: ["Sales rose sharply in spring, although costs rose too."],
    other: "Revenue climbed steeply in the spring, but so did expenses.",
  },
];
