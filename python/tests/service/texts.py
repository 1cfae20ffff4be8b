"""Short texts on six subjects, and questions about them: made of parts, so that both lists are long enough to learn from."""

from __future__ import annotations

_SUBJECTS = {
    "cooking": (
        ["the soup", "a loaf of bread", "the roast chicken", "a bowl of noodles", "the tomato sauce"],
        ["simmers with garlic and herbs", "needs salt and butter", "is baked in a hot oven", "was served with rice"],
        ["How do I season a stew?", "Which oven heat suits a pie?", "What goes into a good broth?"],
    ),
    "astronomy": (
        ["the comet", "a distant galaxy", "the moon of Jupiter", "a red giant star", "the telescope"],
        ["was seen near Saturn", "shines in the night sky", "orbits beyond Mars", "was photographed from space"],
        ["How far away is the nearest star?", "What makes a planet orbit?", "When is the next eclipse?"],
    ),
    "football": (
        ["the goalkeeper", "a young striker", "the home team", "the referee", "the midfield captain"],
        ["lost the cup final", "scored in extra time", "saved a penalty kick", "left the league match injured"],
        ["Who won the league?", "What is the offside rule?", "How many goals were scored?"],
    ),
    "banking": (
        ["the mortgage", "a savings account", "the central bank", "the loan officer", "a credit card"],
        ["raised the interest rate", "charges a monthly fee", "pays four percent a year", "was refused for lack of income"],
        ["What does a loan cost?", "How do I open an account?", "Why did interest rates rise?"],
    ),
    "gardening": (
        ["the rose bush", "a bed of tulips", "the apple tree", "the compost heap", "a row of carrots"],
        ["must be watered in summer", "grows in sandy soil", "is pruned in early spring", "was eaten by snails"],
        ["When do I plant bulbs?", "Which soil do vegetables like?", "How are hedges cut?"],
    ),
    "music": (
        ["the violin concerto", "a jazz trio", "the opera singer", "the old piano", "a string quartet"],
        ["played a slow melody", "was tuned before the concert", "rehearses in the hall", "recorded a new album"],
        ["Who composed this symphony?", "How is a guitar tuned?", "What is a minor chord?"],
    ),
}

DOCUMENTS = [(f"{who} {what}", name) for name, (whos, whats, _) in _SUBJECTS.items() for who in whos for what in whats]
QUESTIONS = [(question, name) for name, (_, _, questions) in _SUBJECTS.items() for question in questions]
