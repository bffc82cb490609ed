"""What people ask the docs of the demo, in their own words: made up from the topics of the golden queries."""

from collections.abc import Mapping, Sequence
from random import Random

# By the golden query of a topic: how people put it.
TOPICS: Mapping[str, Sequence[str]] = {
    "invite_teammate": (
        "How can I invite a new teammate?",
        "Where do I invite somebody to our team?",
        "How do I add a colleague as a teammate?",
    ),
    "remove_teammate": (
        "What happens to tasks when somebody leaves the team?",
        "Somebody leaves us, who gets the tasks?",
        "How do I remove somebody who leaves?",
    ),
    "roles": ("What roles are there for members?", "Which role can edit boards?", "What may the guest role do?"),
    "price_team": (
        "What does the Team plan cost per month?",
        "How much is the Team plan?",
        "What is the price of the Team plan?",
    ),
    "change_plan": (
        "Can I change our plan during the month?",
        "How do I change to a smaller plan?",
        "Can we change the plan later?",
    ),
    "invoice_copy": (
        "Where can I get a copy of my invoice?",
        "How do I download an invoice as a PDF?",
        "I need a copy of the last invoice.",
    ),
    "vat_number": (
        "Where do I add the VAT number?",
        "How do we put our VAT number on the invoice?",
        "Can I add a VAT number later?",
    ),
    "refund": (
        "Do we get a refund if we cancel now?",
        "How do I get a refund after I cancel?",
        "Is there a refund for the rest of the year?",
    ),
    "sso_setup": (
        "How do we set up single sign-on?",
        "How can I set up single sign-on with our provider?",
        "Which plan has single sign-on?",
    ),
    "two_factor": (
        "How do I require two-factor login for all?",
        "Can we require two-factor login?",
        "Where do I switch on two-factor login?",
    ),
    "data_location": (
        "Where is the data of our boards stored?",
        "In which country is our data stored?",
        "Is our data stored in Europe?",
    ),
    "export_board": ("How can I export a board as CSV?", "Can I export all boards?", "Where do I export a board?"),
    "import_csv": (
        "How do I import tasks from a spreadsheet?",
        "Can I import a spreadsheet with tasks?",
        "Can we import tasks from Excel?",
    ),
    "recurring_task": (
        "How can I make a task repeat each week?",
        "Can a task repeat every month?",
        "How do I stop a task that repeats?",
    ),
    "restore_task": (
        "I deleted a task, can I get it back?",
        "How do I get a deleted task back?",
        "Somebody deleted my task. Where is it?",
    ),
    "time_report": (
        "How do I see how long a task took us?",
        "Where do I see how long we took?",
        "Is there a report of how long tasks take?",
    ),
    "api_limits": (
        "How many requests may we send to the API?",
        "What is the limit of requests for the API?",
        "Too many requests to the API, what now?",
    ),
    "api_key": ("How can I make a new API key?", "Where do I make an API key?", "How do I replace an API key?"),
    "webhook_retry": (
        "What happens if a webhook does not answer?",
        "Does Tidewell call our webhook again?",
        "Our webhook did not answer, is it lost?",
    ),
}
# What nobody asked before, and the docs do not answer: a feature that was announced in a newsletter.
NEW_TOPIC = (
    "I read about the AI assistant in your newsletter. How do I let it summarise the comments of a whole project?",
    "Can the new AI assistant write weekly summaries for our customers, and in which languages does it do that?",
    "Does the AI assistant train its language model with our private comments, and how would we opt out of that?",
    "How do I give the AI assistant access to only some projects, so that it never summarises confidential ones?",
    "We would love automatic summaries of long discussions. Is the AI assistant part of our subscription already?",
)
OPENINGS = ("", "", "", "Hi! ", "Hello, ", "Hi, quick question: ")
ENDINGS = ("", "", "", "", " Thanks!", " Thank you.")


def question(topic: str, random: Random) -> str:
    """Return a question about a topic."""
    return f"{random.choice(OPENINGS)}{random.choice(TOPICS[topic])}{random.choice(ENDINGS)}"


def new_question(random: Random) -> str:
    """Return a question about what is new."""
    return f"{random.choice(OPENINGS)}{random.choice(NEW_TOPIC)}{random.choice(ENDINGS)}"
