"""All numeric limits, one per line, so that every size, length, count and time is bounded.

The comment on each line has three parts, separated by semicolons: the unit; what is limited; what happens beyond the
limit. A comment above a group is its heading, and further lines are its reasons. docs/reference/limits.md is generated
from them, with the unit in place of "those" at the beginning of what is limited.
"""

# Text in input files
ID = 2_000  # characters; an id of a query, document or chunk; exit code 2
TAG = 200  # characters; a tag, a tier, and a label of a golden row or a run row; exit code 2
QUESTION = 20_000  # characters; a question; exit code 2
ANSWER = 1 << 20  # characters; a text of a golden row about the answer, and `response` and `error`; exit code 2
NORMAL = 4 << 20  # characters; a text with its ligatures and the like expanded, to be compared; exit code 2
PATTERN = 2_000  # characters; a pattern or a text that answers are searched for; exit code 2
PROGRAM = 100_000  # instructions; a compiled pattern, in which one class can be a thousand; exit code 2
COMPILED = 4_000_000  # instructions; compiled patterns that are kept for further rows; compiled again
TEXTS = 5_000  # texts and patterns; those that the rules of a golden row search its answer for; exit code 2
REFUSAL_PHRASES = 1_000  # phrases; `refusal_phrases` in the configuration; exit code 2
CLEARED = 100  # matches; those of a forbidden claim within allowed phrases, in one answer; the next one is forbidden
ALLOWED_PHRASE = 200  # characters; what an allowed phrase covers; it does not count
MATCHES = 1_000  # matches; those of a pattern in an answer, for `as_evaluated` or a judge; others are not looked at
SCHEMA = 20_000  # bytes; the schema of a rule `json_schema`; exit code 2
SCHEMA_STEPS = 1_000_000  # steps; comparing an answer with a schema; the rule is broken
ALLOWED_VALUES = 100  # values; `allowed` of `must_not_leak`; exit code 2
VALUE_LINE = 2_000  # characters; a line of a question whose personal data an answer may repeat; it may not repeat it
VALUE_ENDS = 50  # places; where a value in a question may end; the answer may not repeat it
CODE = 100_000  # characters; a block of Python, YAML or SQL for the rule `code_parses`; the rule is broken
CODE_STEPS = 1_000_000  # steps; parsing a block of SQL, in calls of functions; the rule is broken
TIERS = 100  # tiers; `tiers` in the configuration; exit code 2
TURNS = 1_000  # turns; `turns` of a golden row; exit code 2
TAGS = 20_000  # tags; different tags in all golden files; exit code 2
KEY = 300  # characters; a key of the configuration; exit code 2
CONFIG_DEPTH = 20  # levels; nesting of the configuration; exit code 2
NESTING = 100  # levels; nesting of a baseline, and of the report of `mode: post-comment`; exit code 2

# Tool calls in input files
CALLS = 1_000  # calls; `tool_calls` of a run row, where a metric or a rule reads them; exit code 2
REFERENCE_CALLS = 100  # calls; `reference_tool_calls` of a golden row; exit code 2
ARGUMENTS = 1_000  # arguments; all `reference_tool_calls` of a golden row, and a rule on a tool; exit code 2
ARGUMENT_LEVELS = 100  # levels; nesting of the arguments of a tool call; invalid in a run, exit code 2 in a golden row

# Numbers in input files
# Far above any real value, and below 2^53, the largest integer that every JSON reader can represent exactly.
RANK = 1_000_000_000  # ; a rank, a cut-off, the days of `max_baseline_age`; exit code 2
CUTOFFS = 10  # cut-offs; a list in `k`; exit code 2
WEIGHT_LEAST = 1e-9  # ; the weight of a query, at least; exit code 2
WEIGHT = 1_000_000_000  # ; the weight of a query, at most; exit code 2
GRADE = 1_000_000_000  # ; the grade of a document; exit code 2
EXPONENT = 64  # ; the grade of a document with `gain: exponential`; exit code 2
MILLISECONDS = 1_000_000_000  # ms; `latency_ms` of a run row, and a limit on latency; exit code 2
WINDOW_LEAST = 10  # runs; `history.window`, at least; exit code 2
WINDOW = 100  # runs; `history.window`, at most; exit code 2
ALPHA_LEAST = 0.001  # ; `fail_on.alpha`, at least; exit code 2
PERCENT_DIGITS = 5  # digits; a percentage that may be over 100, before the point; exit code 2
PERCENT_DECIMALS = 9  # digits; a percentage that may be over 100, after the point; exit code 2
SCORE = 1_000_000_000  # ; the end of a score's `scale`, above or below 0; exit code 2
SCORES = 100  # scores; those declared under `metrics`; exit code 2
LABEL_LIMITS = 1_000  # limits; those on labels that a key such as `minimums.label_recall` has; exit code 2
SCORE_NAME = 100  # characters; the name of such a score; exit code 2
SCORED_BY = 100  # values; the different `scored_by` of scores files; the others are left out
REASONS = 20  # reasons; those of the worst values of a score that are held; the others are left out
REASON = 300  # characters; such a reason; cut, with an ellipsis

# Sizes of input files
LINE = 64 << 20  # bytes; a line of JSON lines; exit code 2
CONFIG_VALUES = 50_000  # keys and values; the configuration; exit code 2
CONFIG = 1 << 20  # bytes; the configuration; exit code 2
UNPACKED = 16 << 20  # bytes; a line or a baseline in a gzip file that is smaller than 1/24 of that; exit code 2
UNPACKED_RATIO = 24  # times the gzip file's size; a line or a baseline in a larger gzip file; exit code 2
UNPACKED_TOTAL = 64 << 20  # bytes; all lines of a gzip file that is smaller than 1/100 of that; exit code 2
UNPACKED_TOTAL_RATIO = 100  # times the gzip file's size; all lines of a larger gzip file; exit code 2
QUESTIONS = 16 << 20  # bytes; the list of questions for `init`; exit code 2
TICKED = 64 << 20  # bytes; the candidates that `init --from-run` writes and `label --ticked` reads; exit code 2
CASES = 16 << 20  # bytes; a file of fitz-gov's cases that `convert` reads; exit code 2
RESULTS = 256 << 20  # bytes; a document of results that `convert` reads scores from; exit code 2
SCORE_NAMES = 1_000  # names; the different scores and checks that `convert` reads together; exit code 2
SCORE_REASON = 1_000  # characters; why a score or a check is as it is; `convert` cuts it, with an ellipsis
CSV_CELL = 1_000_000  # characters; a cell of CSV; exit code 2
PROGRESS = 16 << 20  # bytes; input that a terminal shows no progress of; a progress bar is shown
RUN_KEYS_COMPARED = 128 << 10  # bytes; rows of a run or baseline that have no key twice; later, the last value counts
EXPLAINED = 4 << 20  # bytes; a row whose errors are all reported; of a larger one, only the first is
FAULTY_ROWS = 10_000  # rows; faulty rows of JSON lines that are counted; the rest of the file is not read

# Errors and warnings about input
PROBLEMS = 50  # problems; a list of what is wrong with the input; the others are counted
LINE_RANGES = 20  # ranges of lines; a problem that repeats in a file; an ellipsis stands for the others
FAULTS = 49  # faults; one row, or the configuration; one more problem says that there are others
QUESTION_PROBLEMS = 5  # problems; a list of questions for `init`; the others are counted
MESSAGE = 1_000  # characters; the location, and the message, of a problem or a warning; cut, with an ellipsis
VALUE = 80  # characters; a value, or the type of a column, in a message; cut, with an ellipsis
VALUE_TEXT = 60  # characters; a text within a value in a message; cut, with an ellipsis
VALUE_ITEMS = 3  # items; a list or an object in a message; an ellipsis stands for the others
NAME = 40  # characters; a key, or an id in a message of `convert`; cut, with an ellipsis
JSON_REST = 20  # characters; what follows an error in JSON; cut
NAMES = 3  # names; ids, versions, gates or unknown fields in one message; the others are counted, or left out
UNREAD_FIELDS = 50  # names; unknown fields of golden rows that are named in warnings; the others are left out
SPELL_CHECKED = 100  # rows; search for misspelled fields in each file of a run; further rows are not searched
CONFIG_SEARCHED = 10_000  # files; a folder that is searched for names like the configuration's; a larger one is not
NEAR_LENGTH = 100  # characters; a misspelled name that is compared with the known ones; the rest is not compared
NEAR_KNOWN = 10_000  # names; known names to suggest from; further names are not suggested
NEAR_SHARED = 2_000  # names; candidates that share two adjacent characters; the rest is not counted
NEAR_COMPARED = 10  # names; candidates that are compared in full; the others are not suggested

# Commands other than `check`
LABEL_TEXT = 2_000  # characters; a result's text, and a question, in `label`; cut, with an ellipsis
LABEL_LINES = 12  # lines; a question in `label`; cut, with an ellipsis
UNJUDGED = 100  # documents; unjudged documents of a query whose effect `unjudged` computes; further ones count as none
CANDIDATE_TEXT = 200  # characters; a result's text, and a question, in `candidates.txt`; cut, with an ellipsis
SLUG = 48  # characters; an id that `init` makes from a question; cut after a word
FOLDER_NAME = 80  # characters; a folder in the name of the workflow that `init` writes for it; cut
TAGGED = 5  # queries; those with a tag, at least; `lint` notes a small tag
LINT_IDS = 10_000  # ids; document ids from which `lint` suggests a spelling; ids of further rows are not suggested
LINT_ELEMENTS = 100  # elements; those of one rule that `lint` compares with each other; further ones are not
LINT_REPEATED = 10  # findings; those of one rule that `lint` shows; the others are counted
LINT_SUGGESTED = 5  # findings; those for which `lint` suggests a spelling; the others have no suggestion
ACCEPTED = 20  # records; accepted regressions in a baseline; the oldest are left out
BROKEN_LISTED = 20  # queries; those that a new baseline breaks, and the waivers for them; the others are counted
CHANGED_ITEMS = 100  # items; contract changes of each kind in a baseline that replaced one; the others are counted
GOOD_RUNS = 100  # runs; the good runs of a baseline; exit code 2
COMPARED_RUNS = 20  # runs; the runs that `compare` reads; exit code 2
DISAGREEMENTS = 50  # queries; the queries that `compare` lists; the others are counted
RUN_LABEL = 60  # characters; the name of a run in `compare`; cut, with an ellipsis
FAILED_CHECKS = 100  # checks; the failed checks of one record of accepted regressions; the others are counted

# Runs
BASELINE_ROWS = 1_000  # rows; those of a query in a baseline whose first documents are compared with; not compared
COMPARED_IDS = 10_000  # ids; those of rows without a relevant document, to find its id in another form; not compared
FORMER_LABELS = 10_000  # sets; sets of documents tried as a query's former labels; with more, they count as found
UNKNOWN = 10_000  # ids; the ids of a run without a golden query in a report; the others are counted
VERSIONS = 1_000  # values; a version field of a run on Spark; a warning says that others are left out
VIOLATIONS = 1_000  # violations; those of a row's rules in all turns that are listed; the others of a rule are one

# Products of two sizes
# Time grows with them: at the limit, texts take a second, and the worst patterns half a minute.
SEARCHED = 4 * 10**9  # ; characters of an answer times instructions of a compiled pattern; exit code 2
DISTANCE = 10**10  # ; characters of a query's contexts times those of `reference_contexts`, for a distance; exit code 2
ARGUMENTS_SEARCHED = 2 * 10**9  # ; characters in a row's calls, 1,000 a text or more, times patterns; exit code 2
TRANSLATION = 200_000  # characters; a response and its `reference` together, for `bleu` and `chrf`; exit code 2
SUBSEQUENCE = 10**9  # ; words of a response times words of its `reference`, for `rouge_l`; exit code 2

# All reports
ALL_QUERIES = 10_000  # golden queries; a report with all queries by default; only changed queries are listed
RAISED = 20  # findings; the message of `ContractBroken` in Python; the others are counted
OPEN_QUERIES = 5  # queries; broken queries that Markdown does not fold; the others are folded
HEADLINE = 90  # characters; the headline of a report; facts that matter less are left out
BRANCH = 60  # characters; a branch in a sentence about the history; cut, with an ellipsis
LISTED = 5  # documents; a list in a sentence, and the ranks in a cell; the others are counted
REPLACED_DAYS = 14  # days; a note that the baseline was replaced; only the list of inputs has it
NOTE_REASON = 300  # characters; why regressions are accepted, in the note on a replaced baseline; cut, with an ellipsis
LEAST_OVERLAP = 10  # queries; those with the least overlap with the baseline; the others are left out
RETRIEVED_QUERIES = 1_000  # queries; broken queries whose results are listed, before and now; others have no list
RETRIEVED = 20  # results; the list of results of a broken query; further ones are left out
SAID = 2_000  # characters; an answer, and why there is none, of a broken query; cut, with an ellipsis
SAID_CONTEXT = 600  # characters; a context of a broken query; cut, with an ellipsis
SAID_CONTEXTS = 10  # contexts; a broken query; the others are counted
SAID_CALLS = 20  # tool calls; a broken query; the others are counted
SAID_MESSAGES = 40  # messages; the conversation of a broken query; the others are counted
SAID_MESSAGE = 600  # characters; a message of a broken query; cut, with an ellipsis
SAID_ARGUMENTS = 300  # characters; the name, and the arguments, of a tool call of a broken query; cut, with an ellipsis
SAID_NAME = 100  # characters; the mode, the label and the finish reason of a broken query; cut, with an ellipsis
SAID_TEXTS = 2 << 20  # characters; answers, contexts and calls of a run's broken queries; further queries have none
LABELS_LISTED = 20  # labels; the table of labels in a report, the worst first; the others are counted
MATRIX = 10  # modes; the matrix of modes, which has three; others are left out
TAG_METRICS = 8  # metrics; the table of tags; beyond that, it has the first ones with a limit, and counts the others
SUMMARY_LINE = 500  # characters; `summary` in `report.json` and the action's output; cut, with an ellipsis
CELL = 200  # characters; a cell of a table in the terminal; cut, with an ellipsis
TERMINAL_QUERIES = 20  # queries; broken queries in the terminal, and those that do not fail; the others are counted
TERMINAL_WHY = 200  # characters; why a broken rule does not count, in the terminal; cut, with an ellipsis
TERMINAL_QUESTION = 80  # characters; a question in the terminal; cut, with an ellipsis
TERMINAL_RESULT = 60  # characters; a result of a broken query in `diff`; cut, with an ellipsis
TERMINAL_ANSWER = 200  # characters; the answer of a broken query in the terminal; cut, with an ellipsis
TERMINAL_REASON = 500  # characters; why regressions are accepted, in the terminal; cut, with an ellipsis
EXCERPT = 80  # characters; the part of an answer that a message quotes; cut, with ellipses

# Markdown: `report.md`, the comment and the summary
ROWS = 100  # rows; a table or a list; the others are counted
MARKDOWN_ID = 80  # characters; an id, a tag or a version; cut, with an ellipsis
MARKDOWN_QUESTION = 60  # characters; a question; cut, with an ellipsis
MARKDOWN_NAME = 100  # characters; the name of the contract or of a metric; cut, with an ellipsis
MARKDOWN_SENTENCE = 4_000  # characters; a sentence, with 80 of each name; cut, with an ellipsis
MARKDOWN_FINDINGS = 20  # findings; those of one broken query; the others are counted
MARKDOWN_LINE = 500  # characters; a problem, a warning or a reason; cut, with an ellipsis
MARKDOWN_SAID = 300  # characters; an answer or a tool call of a broken query; cut, with an ellipsis
MARKDOWN_CONTEXT = 120  # characters; a context of a broken query; cut, with an ellipsis
MARKDOWN_MESSAGES = 10  # messages; the conversation of a broken query; the others are counted
MARKDOWN_SAID_LINES = 5  # texts; the contexts, or the tool calls, of a broken query; the others are counted
CHANGED_DOCS = 5  # documents; a query whose ranks changed; the others are counted

# `report.html`
ROWS_WITHOUT_TEXTS = 100  # rows; the first rows without texts of results; the page shows no texts
PASSAGE = 400  # characters; the text of a document that entered or left the top k; cut, with an ellipsis
HTML_TEXT = 1_000  # characters; a text without a limit of its own; cut, with an ellipsis
HTML_NOTE = 5_000  # characters; a note below the metrics, and a name in the headline; cut, with an ellipsis
HTML_ID = 120  # characters; an id or a tag; cut, with an ellipsis
HTML_NAME = 80  # characters; a document or a tag in a sentence; cut, with an ellipsis
HTML_QUESTION = 200  # characters; a question, without JavaScript; cut, with an ellipsis
HTML_WHY = 500  # characters; why a broken rule does not count; cut, with an ellipsis
HTML_REASON = 300  # characters; why a gate is waived; cut, with an ellipsis
HTML_QUERIES = 100  # queries; the table without JavaScript; the others are counted
HTML_RANKS = 5  # documents with their ranks; a query, without JavaScript; the others are counted
HTML_SAID_LINES = 40  # lines; an answer, a context or a tool call; further line breaks are shown as escapes
HTML_CARDS = 12  # cards; limited means of tags; the others are folded
HTML_OPEN_TAGS = 10  # tags; the table of tags; the others are folded
HTML_TAGS = 200  # tags; the table of tags, folded ones included; the others are counted
HTML_LINES = 100  # lines; a folded list; the others are counted

# Calls over HTTP, of `record` and to GitHub
HTTP_ANSWER = 16 << 20  # bytes; an answer, unpacked; the call fails
SERVICE_REDIRECTS = 5  # redirects; those of a recorded service, within its host; the attempt fails
SERVICE_SNIPPET = 2_000  # characters; `response_snippet` in `error_detail`; cut, with an ellipsis
SERVICE_REASON = 200  # characters; the reason that a recorded service gives, in a message; cut, with an ellipsis
SERVICE_NAMES = 20  # names; the keys of an answer in which nothing is found, in a message; left out
SERVER_MODELS = 50  # models; those of a server, in the details of a recording; left out

# What is written to GitHub
# GitHub accepts comments of 65,536 characters and summaries of 1 MiB, and shows ten annotations of each level for a
# step; the action adds up to six warnings of its own. The runner cuts messages of annotations at 4,096 characters,
# GitHub their titles at 255. Bytes are counted because they are never fewer than characters.
COMMENT = 64_000  # bytes; a comment; sections are left out, then rows
COMMENT_FILE = 55_000  # bytes; the file of `comment-body-file`; sections are left out, then rows
COMMENT_NAME = 300  # characters; the name of a contract in its comment's marker, escaped; a hash stands for it
COMMENT_TRIES = 5  # tries; looking for the contract's comment and writing it; the comment is given up
BASELINE_TIME = 40  # characters; the time of a baseline that is not a date, in the footer; cut, with an ellipsis
SUMMARY = 1_000_000  # bytes; the summary of a job; sections are left out, then rows
ERRORS = 10  # annotations; errors of a step; the last one counts the others
WARNINGS = 4  # annotations; warnings of a step; the last one counts the others
ANNOTATION = 4_000  # characters; the message of an annotation; cut, with an ellipsis
ANNOTATION_TITLE = 250  # characters; the title of an annotation; cut, with an ellipsis

# What is read from GitHub
REPORT = 16 << 20  # bytes; the report of `mode: post-comment`; exit code 2
REPORT_EXPLAINED = 1 << 20  # bytes; such a report whose errors are all reported; only the first error is reported
REPORT_SENTENCE = 1 << 16  # characters; a sentence in such a report; exit code 2
REPORT_NOTES = 1_000  # notes; the likely mistakes, or the notes of one kind, in such a report; exit code 2
REPORT_SHORTEST = 63_000  # bytes; such a report as a comment, in its shortest form; exit code 2
PULL_REQUEST = 10**12  # ; the input `pull-request`; exit code 2
RUN_DIGITS = 18  # digits; the id of a run and the number of its attempt; counts as unknown
MARKER = 2_000  # characters; the marker of a comment; fields beyond are not read
COMMENT_RESULTS = 20  # results; what the marker has of its workflow run beside the one shown; one stands for the rest
LABEL_EVENTS = 3_000  # events; those of a pull request with the `accept-label`; the label does not count
RUN_AHEAD = 10**9  # ; how far the run in a comment's marker may be above our own; the marker is ignored
AUTHORS = 100  # authors; those of comments with our marker whom GitHub is asked about; the others are strangers
PULL_REQUEST_FILES = 3_000  # files; a pull request, searched for the baseline; whether it changed counts as unknown
PAGE = 100  # items; a page of GitHub's lists; the next page is read
GITHUB_ANSWER = 200  # characters; GitHub's reason for refusing a call; cut, with an ellipsis

# Time that GitHub gets
TIMEOUT = 3_600  # s; the input `github-timeout`; exit code 2
TIMEOUT_DEFAULT = 150  # s; all calls together, by default; the comment is given up, with a warning
CONNECT = 5  # s; connecting to GitHub; the call is tried again
READ = 20  # s; the time between two bytes of an answer; the call is tried again
TRIES = 6  # tries; a call; the comment is given up, with a warning
FIRST_PAUSE = 1  # s; the pause before the second try; doubled with each try
LIMITED_PAUSE = 60  # s; the first pause after a rate limit that GitHub names no time for; doubled with each try

# Recording
RETURNED = 100_000  # items; a list that a recorded system returns; exit code 2
RETURNED_SHOWN = 200  # characters; what a recorded system returned, in a message; cut, with an ellipsis
FAILURE = 1_000  # characters; the message of an exception of a recorded system; cut, with an ellipsis
RECORDED_TOP = 10_000  # results; those that a recorded system is asked for; exit code 2
CONCURRENCY = 256  # calls; those of a recorded system, or of a judge, at the same time; exit code 2
CALL_SECONDS = 3_600  # s; one call of a recorded system or a judge, and its connection; exit code 2
RETRIES = 20  # attempts; those after a failed one; exit code 2
RATE = 1_000_000  # calls; those of a recorded system in a second or a minute; exit code 2
ROUNDS = 1_000  # rounds; how often all questions are asked, and the questions of a warm-up; exit code 2
SECRET_LEAST = 8  # characters; a secret, at least; exit code 2
BACKOFF = 30  # s; before another attempt that no server asked to wait for; further ones wait as long
ASKED_PAUSE = 900  # s; a pause that a recorded system or a judge asks for; it is asked again
WIND_UP = 10  # s; calls that are under way when a recording or a judging is stopped; they are left alone
FAILED_IN_A_ROW = 20  # questions; those in a row that fail, or cases of a judge; no others are asked, exit code 2
RECENT = 1_000  # questions; those from which a recording under way takes its 95th percentile; older ones do not count
LOOP_CANCELLING = 1  # s; an asynchronous function of a recorded system, after its time; it is left alone
LOOP_CLOSING = 5  # s; asynchronous code of a recorded system that is cancelled; it is left alone
COMMAND_ANSWER = 16 << 20  # bytes; what a recorded command writes for one question; the question fails
STDERR_TAIL = 2_048  # bytes; the end of what a recorded command writes to standard error, in a message; cut
STRAY_LINES = 1_000  # lines; what a recorded command writes beside its answers; the others are not passed on
RESTARTS = 3  # restarts; a recorded command, in a row without an answer; exit code 2
READY = 600  # s; a recorded command that says when it is ready, and is not; exit code 2
STOPPING = 5  # s; a recorded command that is to end; it is killed
TURN = 10  # s; another command that writes a file of the same folder; exit code 2
GIT = 10  # s; git, asked for the commit of what is recorded; counts as unknown
TARGET_SOURCE = 16 << 20  # bytes; a file that a target names; it may change without the recording being started again
SOURCE = 256 << 20  # bytes; a module of a recorded system, which counts as changed, or a watched file; exit code 2
WATCHED = 1_000  # files; those that `--watch` names; exit code 2
COMPARED_QUESTIONS = 100  # questions; those whose ids are compared with the run of before; further ones are not
STREAMED_DOCUMENTS = 10  # documents; a question in `--stream-out`; the others are left out
DETAILED_FAILURES = 1_000  # failures; those that `--details` describes; the others are counted
CHROMA_COPY = 2 << 30  # bytes; a folder of Chroma's that is copied to be recorded; exit code 2
TRACE_BODY = 16 << 20  # bytes; spans that are sent at once, unpacked; they are refused
TRACE_SPANS = 10_000  # spans; one call of a recorded system; the question fails
TRACE_CONNECTIONS = 64  # connections; those to the receiver of spans at the same time; others are closed
TRACE_SECONDS = 10  # s; a request with spans, and the time between two; the connection is closed
TRACE_WAIT = 600  # s; waiting for the spans of a call; exit code 2
CONVERTED_SPANS = 1_000_000  # spans; those that `convert` reads; exit code 2

# Calls of a judge
JUDGE_BUDGET = 10**12  # ; `--max-calls`, `--max-tokens` and `--max-usd` of a judge, and prices; exit code 2
JUDGE_CONTEXT = 10_000_000  # tokens; `--max-context` of a judge; exit code 2
LABEL_WHOLE = 20_000  # characters; a text in `judge label`; cut, with an ellipsis
LABEL_SCREEN = 25  # lines; a screen of `judge label`; the others follow with the key m
LABEL_SAMPLE = 100_000  # items; `--sample` of `judge label`; exit code 2
JUDGE_DEADLINE = 7 * 86_400  # s; `--deadline` of a judge; exit code 2

# Judgments
JUDGED_TEXT = 4_000_000  # characters; all data of one call to a judge; unjudged
ITEMS_A_CALL = 20  # items; one call to a judge, beside its controls; the others are asked in further calls
REPLY = 1 << 20  # characters; a judge's reply; invalid
FLAGGED = 20  # texts; the different matches of a pattern that a judge is asked about; with more, it stands
EVIDENCE = 2_000  # characters; the quote in a judge's reply; invalid
JUDGED_BECAUSE = 1_000  # characters; a judge's reason; cut, with an ellipsis
JUDGED_CLAIMS = 20  # claims; a judged query in Markdown; the others are counted
EVIDENCE_LEAST = 8  # characters; a quote that is not the whole of its text, at least; invalid
CONTROL = 300  # characters; the passage that a judge must find again in a text; cut after a word
JUDGES = 20  # judges; those of whom a query has judgments; exit code 2
VOTES = 15  # votes; one item; exit code 2
CRITERIA = 100  # criteria; one golden row; exit code 2
REFERENCE_CLAIMS = 100  # claims; those that a judge splits a reference into; invalid
JUDGE_NAME = 300  # characters; a model or a host, in judgments; cut when written, exit code 2 when read
FINGERPRINT = 1_000  # characters; the fingerprint of a judge; cut when written, exit code 2 when read
JUDGMENT_TEXTS = 2 << 30  # bytes; the texts of all judgments of a check, in memory; exit code 2
JUDGMENTS = 1_000_000  # judgments; all judgments files of a check; exit code 2
CALIBRATION = 1 << 20  # bytes; `judge-calibration.json`; exit code 2
LABELS = 1_000_000  # labels; a count in `judge-calibration.json`; exit code 2
JUDGED_TOKENS = 10**12  # tokens; those that a judgment has used; exit code 2

# History
ENTRY = 256 << 10  # bytes; an entry of a history; not read, exit code 2 where it is needed
RESULT_SET = 8 << 20  # bytes; a result set; the run is recorded without one
ENTRY_FAILED = 1_000  # queries; those that fail, and other broken ones, of an entry; left out
ENTRIES = 10_000  # entries; a contract; older ones are not read
ENTRIES_AT_ONCE = 100  # entries; one call to GitHub; the others follow
MONTHS_AT_ONCE = 50  # months; one call to GitHub; the others follow
TEXTS_AT_ONCE = 2 << 20  # bytes; the entries of one call to GitHub; the others follow
DELETED_AT_ONCE = 100  # result sets; a commit that deletes result sets; the others follow
BRANCH_FIRST_PAUSE = 0.5  # s; before a branch is written again, at most; doubled with each try
BRANCH_PAUSE = 15  # s; such a pause, at most; further ones are as long
WINDOW_AMONG = 500  # entries; those among which the runs of `history.window` are searched; older ones do not count
REACHABLE = 300  # commits; those whose entries can be a baseline; older ones cannot
STATUS_DESCRIPTION = 140  # characters; the description of a commit's status; cut, with an ellipsis
BADGE_NAME = 40  # characters; the name of a contract or of a metric in a badge; cut, with an ellipsis
UNFINISHED = 3_600  # s; a temporary file in a history; deleted when an entry is added
SUGGESTED_RUNS = 200  # runs; those of a branch from which `suggest --history` takes limits; older ones are not read
TREND_METRICS = 3  # metrics; those whose trend is shown; left out
TREND_RUNS = 50  # runs; a metric in `history` of a report; older ones are left out when written, exit code 2 when read
TREND_SHOWN = 20  # runs; the trend of a metric in a line; older ones are left out
PAGE_POINTS = 500  # points; the chart of a metric; further ones are left out, but for the extremes of each stretch
PAGE_CHARTS = 8  # charts; a contract on the page of a history; left out
PAGE_CONTRACTS = 20  # contracts; the page of a history; left out, with a warning
PAGE_SEARCHED = 500  # runs; those that are searched for change points one by one; of more, means of several
PAGE_ROWS = 200  # runs; the table on the page of a history; the others are counted
PAGE_FAILED = 50  # queries; those on the page of a history that failed most often; left out
PAGE_QUERIES = 20  # queries; those of a change point on the page of a history; the others are counted

# The team service
INDEXED_TEXT = 500  # bytes; a query's id in an index of the service; its digest is there in its place
SERVICE_READERS = 16  # connections; those that read the service's database at once; the next one waits
SERVICE_DATABASE_WAIT = 5  # s; the service's wait for its database; 503
SERVICE_PAGES = 200  # pages; a list of the service that a command reads; exit code 2
SERVICE_THREADS = 96  # requests; those at work in the service, most of which wait to write; the next one waits
SERVICE_WRITES_WAITING = 64  # writes; those that wait for the thread that writes to SQLite; 503
BLOB = 32 << 20  # bytes; a report, a result set or the contract of a day, sent to the service; 413, or 422
RUN_NOTE = 500  # characters; why somebody starts a run; 422
MOUNTED_PROJECTS = 1_000  # projects; those that an operator mounts; exit code 2
PROJECT_NAME = 200  # characters; `name` of a mounted project; exit code 2
PROJECT_TIMEOUT = 86_400  # s; `timeout` of a mounted project; exit code 2
PROJECT_PATTERNS = 100  # patterns; `redact` of a mounted project; exit code 2
ALERT_RUN_HOURS = 24  # hours; how long ago a run ended that raises an alert; none is raised
ALERT_CHANGE_DAYS = 14  # days; from a change point that raises an alert to the newest run; none is raised
ALERTS_WAITING = 1_000  # alerts; those of a project that wait to be delivered; left out, which the log says
ALERT_DAYS = 7  # days; an alert that cannot be delivered; given up
ALERT_SECONDS = 10  # s; a try to deliver an alert; tried again
ALERT_PAUSE = 86_400  # s; until an alert is tried again, which doubles with each try; tried then
ALERT_ANSWER = 4_096  # bytes; what is read of the answer to an alert; the rest is not read
ALERT_ROW_DAYS = 90  # days; an alert that was delivered or given up; deleted
ALERTS_STORED = 10_000  # alerts; those that are kept; the oldest are deleted
KEEP_RUNS = 1_000  # runs; those of a project that the service keeps by default; the oldest are deleted
SERVICE_RUNS = 1_000_000  # runs; `keep_runs` of a mounted project, and `--keep-runs`; exit code 2
SERVICE_WORKERS = 16  # processes; `--workers` of `serve`; exit code 2
RUNS_QUEUED = 100  # runs; those of a project that wait for a worker; 429
RUN_ATTEMPTS = 3  # attempts; a run whose worker dies; it has failed
RUN_LAST_LINES = 10  # lines; what such a run printed last, in its problem; left out
RUN_LOG = 64 << 10  # bytes; what the processes of a run print; the last of it is kept
RUN_RECORDED = 256 << 20  # bytes; what `record` writes in a run of the service; it has failed
RUN_GRACE = 5  # s; the processes of a run that are asked to end; killed
LEASE_SECONDS = 60  # s; a worker that is not heard of; another one takes its run
UNNAMED_SECONDS = 86_400  # s; a blob that no run has; deleted
RETENTION_MS = 25  # ms; a transaction that deletes old runs or blobs; the next transaction
RETENTION_ROWS = 1_000  # rows; a transaction that deletes what has expired; the next transaction
SERVICE_DAYS = 3_650  # days; `keep_days` of a mounted project, and what metrics are asked of; exit code 2, or 422
SERVICE_CLOCK_AHEAD = 300  # s; how far the time of a new entry is after the time of the service; 422, exit code 2
SERVICE_CONTRACT = 8 << 20  # bytes; a contract by which the service scores runs again; they stay as recorded
SERVICE_GOLDEN_FILES = 100  # files; those of such a contract; runs stay as recorded
SERVICE_TREND_RUNS = 2_000  # runs; those of a branch that the service scores again; older ones stay as recorded
SERVICE_TREND_QUERIES = 500_000  # queries; those of all runs that the service scores again; older ones stay as recorded
SERVICE_TREND_BYTES = 256 << 20  # bytes; the result sets of these runs; older ones stay as recorded
SERVICE_DIFF_QUERIES = 500  # queries; those lost, and those won, in a diff of the service; the others are counted
SERVICE_PASSES = 100  # runs; those that are searched for the last pass; older ones are not
SERVICE_RUNS_BEFORE = 100  # runs; how far back the service looks for the run before on the same branch; none is found
SERVICE_COMPUTING = 2  # answers; reports and comparisons of the service that are computed at once; others wait
SERVICE_QUERIES = 20  # queries; a list of newly broken queries on the page of a run; the others are counted
PAGE_ITEMS = 100  # items; one page of a list of the service; 422
OVERVIEW_PROJECTS = 100  # projects; those on the service's first page; the others are counted
OVERVIEW_RUNS = 10  # runs; the newest ones, on the service's first page; left out
PAGE_DIGESTS = 2_000  # digests; one page of the list of result sets; the next page
REPORT_PAGES = 8  # pages; those of reports, and charts of projects, that the service keeps in memory; rendered again
ENTRIES_ANSWER = 8 << 20  # bytes; the entries of one answer of the service; the client asks again for the others
SERVICE_HEADERS = 16 << 10  # bytes; the request line and the headers of a request; 431, or 400
SERVICE_LAST_REQUESTS = 10  # s; the wait for requests at work when the service is asked to stop; cut off
ACCOUNT_NAME = 100  # characters; the name of a user or of a key; 422, exit code 2
KEY_DAYS = 3_650  # days; until a key expires; 422, exit code 2
LINK_SECONDS = 900  # s; a link that logs in; it is no longer valid
SESSION_IDLE = 43_200  # s; a session that sends nothing; it ends
SESSION_SECONDS = 604_800  # s; a session; it ends
USE_NOTED = 60  # s; between two notes of when a key or a session was used; it is not noted
AUDIT_DAYS = 400  # days; a row of the audit log; deleted
REQUESTS_A_SECOND = 100  # requests; a key, a session, or an address without one, in a second; 429
INGESTED_A_SECOND = 1_000  # requests; a key that ingests, in a second; 429
BURST_SECONDS = 2  # s; whose requests may come at once; 429
FAILED_LOGINS = 5  # failures; an address, in a minute; 429, also instead of 401
RATE_BUCKETS = 10_000  # buckets; those that count the requests of keys, sessions and addresses; the oldest is forgotten
SERVICE_BODY = 10 << 20  # bytes; the body of a request; 413
SERVICE_FORM = 64 << 10  # bytes; the body of a request without a key or a session; 413
SERVICE_BODIES = 128 << 20  # bytes; the bodies that are in memory at once; 503
STRANGERS_BODIES = 16 << 20  # bytes; of these, those of requests without a key or a session; 503
SERVICE_CONNECTIONS = 500  # connections; those to the service that are open at once; the oldest idle one is closed
CONNECTION_SECONDS = 30  # s; a connection that sends no request, or takes nothing of an answer; closed at the next look
BODY_SECONDS = 30  # s; until the body of a request is there; 408
PLAYGROUND_PROCESSES = 4  # processes; those that answer in the playground; the one that waits longest is ended, or 503
PLAYGROUND_IDLE = 600  # s; such a process that nobody asks; it is ended
PLAYGROUND_SECONDS = 60  # s; an answer in the playground, and the start of its process; the process is killed, 504
PLAYGROUND_FILES = 5_000  # files; those of a project that start its process again when they change; no others do
PLAYGROUND_QUERY = 20_000  # characters; a question in the playground, or an earlier message; 422
PLAYGROUND_MESSAGES = 100  # messages; those before a question in the playground; 422
PLAYGROUND_TEXT = 20_000  # characters; a text of an answer in the playground; cut, with an ellipsis
PLAYGROUND_ITEMS = 100  # items; a list in an answer in the playground; left out
PLAYGROUND_GOLDEN = 500  # queries; the list of golden queries on the page of the playground; left out
COMPARED_QUESTION = 2_000  # characters; a question that is compared with others; the rest does not count
CANDIDATES_WAITING = 10_000  # candidates; those of a project that wait for a decision; no others are added
INTERACTIONS = 1_000  # interactions; those of a request; 422
INTERACTIONS_UNPACKED = 10 << 20  # bytes; the body of such a request, unpacked; 413
UNPACKED_TIMES = 100  # times; how much larger such a body is unpacked than packed; 413
INTERACTION_QUERY = 20_000  # characters; the question of an interaction; the interaction is rejected
INTERACTION_RESPONSE = 100_000  # characters; the answer of an interaction, or its error; the interaction is rejected
INTERACTION_ERROR = 1_000  # characters; what is stored of an interaction's error; cut, with an ellipsis
INTERACTION_RESULTS = 100  # results; those of an interaction; the interaction is rejected
INTERACTION_TAGS = 20  # tags; those of an interaction; the interaction is rejected
INTERACTION_NAME = 200  # characters; a tag or the source of an interaction; the interaction is rejected
INTERACTION_USER = 1_000  # characters; the user of an interaction; the interaction is rejected, or 422
INTERACTION_AHEAD = 300  # s; how far an interaction is after the time of the service; the interaction is rejected
INTERACTIONS_A_TRANSACTION = 1_000  # interactions; those of all requests that are stored at once; the next transaction
INGESTED_WAITING = 64  # requests; those that wait for their interactions to be stored; 503
KEY_SECONDS = 1  # s; a key that ingests, once it was seen to be valid; looked up again
SETTINGS_SECONDS = 1  # s; what is known of a project whose interactions come; looked up again
GOLDEN_SECONDS = 20  # s; the golden queries and the latencies that interactions are compared with; looked up again
CLIENT_WAITING = 10_000  # interactions; those that wait in the Python client; the next one is dropped and counted
CLIENT_BATCH = 100  # interactions; a request of the Python client; the others follow
DELETED_INTERACTIONS = 10_000  # interactions; a transaction that deletes them; the next transaction
MEASURED_DAYS = 400  # days; what is counted and measured of a day; deleted
CANDIDATES_PAGE = 10  # candidates; those on a page of candidates; the next page
CANDIDATE_ROW = 256 << 10  # bytes; the golden row of an accepted candidate; 422
CANDIDATES_FILE = 8 << 20  # bytes; the rows of candidates in a download; in the next one, when these are golden
CANDIDATE_RESULTS = 10  # documents; those of a candidate's answer that are not folded; folded
SUGGESTED_ID = 60  # characters; the id that is suggested for a candidate; its last words are left out
SCANNED_INTERACTIONS = 20_000  # interactions; those that are searched for a flag and a source at once; the next page
INTERACTION_SOURCES = 20  # sources; the list of a project's sources on its page of production; left out
INTERACTIONS_PAGE = 25  # interactions; those on a page of production; the next page
MONITOR_DAYS = 90  # days; a monitor on the page of production; left out
MONITOR_DRAWN = 2_000  # interactions; those of a day that monitors of texts, scores and latency read; a draw of them
MONITOR_ALARM_DAYS = 70  # days; an alarm of a monitor that does not end; it ends, and the next day may raise it again
MONITOR_GOLDEN = 2_000  # queries; the golden ones that questions are compared with; the others do not count
MONITOR_QUESTIONS = 20_000  # questions; those that are known to be near to a golden query or not; compared again
MONITOR_TURN_MS = 50  # ms; the work of monitors at a stretch; a pause that is as long
MONITOR_PAUSE = 3_600  # s; the rest of a project whose days took long to measure; measured then
ALERT_DRIFT_DAYS = 14  # days; how long ago a monitor's alarm began that raises an alert; none is raised
LOCAL_PATH = 2_000  # characters; where a login leads to; to the first page
