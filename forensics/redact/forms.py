"""What is a secret in a log: for each form a cheap pattern that finds its lines, and the exact one that says which part is replaced.

The cheap patterns run all at once over whole blocks (vectorscan); the exact ones on the lines found only. In an exact pattern the
groups named in `parts` are what is replaced, each with its kind of pseudonym; a judge may say no.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from forensics.redact import judges

Judge = Callable[["re.Match[bytes]"], bool]


class Form(msgspec.Struct, frozen=True):
    """One form of secret. `learn`: its values are looked for in all lines and paths, not only where this form shows them."""

    name: str
    cheap: tuple[str, ...]
    """Regexes for vectorscan, of which each line that holds the form matches one."""
    exact: re.Pattern[bytes]
    parts: dict[str, str]
    """Group -> kind of pseudonym (`Names.of`)."""
    learn: bool = False
    judge: Judge | None = None
    ignore_case: bool = True


def _form(
    name: str,
    cheap: str | tuple[str, ...],
    exact: str,
    kinds: str | dict[str, str],
    learn: bool = False,
    judge: Judge | None = None,
    case: bool = False,
) -> Form:
    parts = {"v": kinds} if isinstance(kinds, str) else kinds
    flags = re.VERBOSE | re.MULTILINE | (0 if case else re.IGNORECASE)
    return Form(name, (cheap,) if isinstance(cheap, str) else cheap, re.compile(exact.encode(), flags), parts, learn, judge, not case)


# ---------------------------------------------------------------- the table

_Q = r"""["'\\]{0,3}"""
_EQ = rf"{_Q}\s{{0,20}}(?:=>|[=:])\s{{0,8}}"
_QUOTED = r"""(?:(?P<q>\\?["'])(?P<v>(?:(?!(?P=q))(?:\\[^\n]|[^\n]))*)(?P=q))"""
_VALUE = r"""(?:\\?(?P<q>["'])(?P<v>[^"'\n]{1,4000}?)\\?(?P=q)|(?P<w>[^\s"'`,;&|<>)\]}][^\s"'`,;&|)\]}]{0,4000}))"""
_SECRET_NAME = r"""
    (?P<name>(?:passw(?:or)?d|passphrase|passwd|pwd|(?<=_)pass|secret(?:[_-]?access)?(?:[_-]?key)?|token|api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key
    |auth[_-]?key|encryption[_-]?key|license[_-]?key|credential|community|psk)\w{0,3}
    |(?<![a-z0-9])[as]k|(?<=[?&])(?:sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token|key|awsaccesskeyid|ossaccesskeyid))
"""
_SECRET_CHEAP = (
    rf"(?:passw|passphrase|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key|encryption[_-]?key|license[_-]?key|credential|community|psk)\w{{0,8}}{_Q}\s{{0,8}}(?:=|:|\s)",
    rf"_pass{_Q}\s{{0,8}}[=:]",
    rf"token\w{{0,3}}{_Q}\s{{0,8}}[=:]",
    r"--[\w-]{0,40}token\w{0,2}\s",
    rf"[as]k{_Q}\s{{0,4}}[=:]",
    r"[?&](?:sig|x-amz|key|awsacc|ossacc)",
)

FORMS: tuple[Form, ...] = (
    # -- secrets proper
    _form(
        "ssh-key",
        r"AAAA[A-Za-z0-9+/]{16}",
        r"(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-\S+|sk-\S+)\s+(?P<v>AAAA[A-Za-z0-9+/]{16,}={0,3})",
        "secret",
        case=True,
    ),
    _form(
        "one-line-key", r"-----BEGIN [A-Z ]{2,40}-----(?:\\+[nr]|[^\n-])", r"-----BEGIN\ [A-Z ]{2,40}-----(?P<v>[^\n]+?)-----END", "secret", case=True
    ),
    _form("jwt", r"eyJ[\w-]{8,}\.", r"(?P<v>\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?)", "secret", learn=True, case=True),
    _form(
        "known-token",
        (
            r"gh[pousr]_\w{16}",
            r"github_pat_\w{16}",
            r"glpat-",
            r"hf_[A-Za-z0-9]{16}",
            r"sk-[\w-]{16}",
            r"xox[abeposr]-",
            r"(?:AKIA|ASIA|LTAI)[A-Z0-9a-z]{12}",
            r"AIza[\w-]{30}",
            r"npm_\w{20}",
            r"pypi-[\w-]{20}",
            r"dckr_pat_",
            r"ms-[0-9a-f]{8}-",
        ),
        r"""(?<![A-Za-z0-9])(?P<v>gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{10,}|hf_[A-Za-z0-9]{16,}|sk-[\w-]{16,}|xox[abeposr]-[\w-]{8,}|(?:AKIA|ASIA)[A-Z0-9]{16}
        |LTAI[A-Za-z0-9]{12,}|AIza[\w-]{30,}|npm_\w{20,}|pypi-[\w-]{20,}|dckr_pat_[\w-]{10,}|ms-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})""",
        "secret",
        learn=True,
        case=True,
    ),
    _form(
        "authorization",
        r"(?:authorization|x-auth-token|x-subject-token|x-api-key)['\"\\]{0,3}\s{0,4}[=:]",
        rf"(?:authorization|x-auth-token|x-subject-token|x-api-key){_EQ}{_Q}(?:(?:bearer|basic|token|digest|negotiate)\s+)?(?P<v>[^\s\"'\\,;]{{4,}})",
        "secret",
        learn=True,
    ),
    _form("cookie", r"cookie['\"\\]{0,3}\s{0,4}[=:]", rf"\b(?:set-)?cookie{_EQ}{_Q}(?P<v>[^\n\"']{{4,}})", "secret"),
    _form("bearer", r"bearer\s", r"\bbearer\s+(?P<v>[\w.~+/=-]{8,})", "secret", learn=True, judge=lambda m: re.search(rb"\d", m["v"]) is not None),
    _form("url-login", r"://[^\s:/@]{0,80}:[^\s@/]{1,200}@", r"://(?P<v>[^\s:/@\"']*):(?P<w>[^\s@/\"']+)@", {"v": "user", "w": "secret"}),
    _form(
        "secret",
        _SECRET_CHEAP,
        rf"{_SECRET_NAME}(?:{_EQ}|(?<=\w)\s(?<!\n)(?=[^\s-]))(?:(?:bearer|basic)\s+)?{_VALUE}",
        {"v": "secret", "w": "secret"},
        learn=True,
        judge=judges.secret,
    ),
    _form(
        "command-login",
        (r"sshpass\s", r"curl[^\n]*\s-u", r"mysql[^\n]*\s-p", r"\spass:\S"),
        r"(?:\bsshpass\s+-p\s*|\bcurl\b[^\n]{0,2000}?\s(?:-u|--user)[ =]*[^\s:]+:|\bmysql\b[^\n]{0,2000}?\s-p|(?<=\s)pass:)['\"]?(?P<v>[^\s'\"]+)",
        "secret",
        learn=True,
    ),
    _form(
        "certificate-name",
        r"(?:subject|issuer)[^\n]{0,60}cn\s{0,2}=",
        r"(?:subject|issuer)\s{0,20}[=:]\s{0,8}(?P<v>[^\n]*\bCN\s{0,2}=[^\n]*)",
        "secret",
    ),
    _form("fingerprint", r"SHA256:[A-Za-z0-9+/]{40}", r"(?P<v>SHA256:[A-Za-z0-9+/]{40,44}=?)", "secret", case=True),
    # -- what users said
    _form(
        "prompt",
        r"(?:prompt|generated.text|input.text|query|question|user.input)['\"\\]{0,3}\s{0,4}[=:]\s{0,4}\\?['\"]",
        rf"(?:prompt|generated[_ ]text|input[_ ]text|query|question|user[_ ]input){_EQ}{_QUOTED}",
        "prompt",
        judge=judges.prompt,
    ),
    _form(
        "bare-prompt",
        r"prompt['\"\\]{0,3}\s{0,4}[:=]\s{0,4}[^\s'\"]",
        r"(?<![\w-])prompt\s{0,4}[:=]\s{0,4}(?!\\?['\"])(?P<v>[^\n]{3,}?)(?=,\s(?:params|sampling_params|prompt_token_ids|lora_request|generated)|\s*$|\r)",
        "prompt",
        judge=judges.prompt,
    ),
    _form(
        "open-prompt",
        r"(?:prompt|generated.text|user.input)['\"\\]{0,3}\s{0,4}[=:]\s{0,4}\\?['\"]",
        rf"(?:prompt|generated[_ ]text|user[_ ]input){_EQ}(?P<q>\\?[\"'])(?P<v>(?:(?!(?P=q))[^\n])+)$",
        "prompt",
        judge=judges.prompt,
    ),
    _form(
        "message", r"(?:content|text|prompt)\\?['\"]?\s{0,2}[:=]\s{0,2}\\?['\"]", rf"\b(?:content|text){_EQ}{_QUOTED}", "prompt", judge=judges.talk
    ),
    _form("prompt-ids", r"(?:token_ids|input_ids)['\"]?\s{0,4}[:=]\s{0,4}\[\d", rf"(?:token_ids|input_ids){_EQ}\[(?P<v>[\d,\s]{{2,}})\]", "ids"),
    # -- people
    _form(
        "email",
        r"[\w.+-]@[\w-]+\.[a-z]",
        r"(?<![\w.+-])(?P<v>[\w.+-]{1,64}@(?:[a-z0-9-]+\.)+[a-z]{2,24})(?![\w@-])",
        "email",
        judge=lambda m: not re.search(rb"@(?:GLIBC|GCC|CXX|plt)", m["v"]) and not m["v"].endswith((b".so", b".py")),
    ),
    _form(
        "home",
        r"(?:home|homes|users)[/\\]{1,2}[^\s/\\]",
        r"(?:/(?:export/|data\d?/|mnt/|nfs/|cache/|share/|storage/)?(?:home|homes|users)/|[a-z]:\\{1,2}users\\{1,2})(?P<v>[^/\\\s\"':;,)\]}>|=]+)",
        "user",
        learn=True,
        judge=judges.user,
    ),
    _form(
        "user",
        (r"(?:user|username|user_name|logname|login|sudo_user|account)['\"\\]{0,3}\s{0,4}[=:]\s{0,4}['\"]?[a-z]",),
        rf"(?<![\w-])(?:sudo_user|user_?name|user|logname|login|account){_EQ}{_Q}(?P<v>[a-z_][\w.-]{{1,60}})(?![\w(/])",
        "user",
        learn=True,
        judge=lambda m: judges.user(m) and not judges.NO_SECRET.fullmatch(m["v"]),
    ),
    _form("account", r"(?:uid|gid)=\d+\(|groups=\d+\(", r"(?:uid|gid|groups)=\d+\((?P<v>[^)\n]+)\)", "user", learn=True, judge=judges.user),
    _form(
        "login",
        r"(?:for user |password for |publickey for |invalid user |sudo:\s+\w|failed for |logged in as)",
        r"(?:\bfor\ user\ |(?:password|publickey)\ for\ (?:invalid\ user\ )?|\binvalid\ user\ |\bsudo:\s+|logged\ in\ as:?\s+)(?P<v>[a-z_][\w.-]{0,60})",
        "user",
        learn=True,
        judge=lambda m: judges.user(m) and m["v"].lower() not in (b"invalid", b"pam_unix", b"the", b"a"),
    ),
    _form(
        "owner",
        r"^\s{0,8}[-dlcbps][rwxsStT-]{9}[.+@]?\s+\d+\s+\S+\s+\S+\s",
        r"^\s{0,8}[-dlcbps][rwxst-]{9}[.+@]?\s+\d+\s+(?P<v>[a-z_][\w.-]*)\s+(?P<w>[a-z_][\w.-]*)\s",
        {"v": "user", "w": "user"},
        learn=True,
    ),
    _form(
        "process-owner",
        (
            r"^\S+\s+\d+\s+\d+\.\d\s+\d+\.\d\s+\d+\s+\d+\s",
            r"^\S+\s+\d+\s+\d+\s+\d+\s+(?:\d\d:\d\d|[a-z]{3}\d\d|\d{4})\s",
            r"^\s*\d+\s+\d+\s+\S+\s+[drstziwx][\w<+]*\s+(?:mon|tue|wed|thu|fri|sat|sun)\s",
        ),
        r"""^(?:(?P<v>[a-z_][\w.-]*)\+?\s+\d+\s+(?:\d+\.\d\s+\d+\.\d\s+\d+\s+\d+|\d+\s+\d+\s+(?:\d\d:\d\d|[a-z]{3}\d\d|\d{4}))\s
        |\s*\d+\s+\d+\s+(?P<w>[a-z_][\w.-]*)\+?\s+[drstziwx][\w<+]*\s+(?:mon|tue|wed|thu|fri|sat|sun)\s)""",
        {"v": "user", "w": "user"},
        learn=True,
    ),
    # -- hosts
    _form(
        "hosts-file",
        r"^\s{0,8}\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\s+[a-z]",
        r"^\s{0,8}\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\s+(?P<v>[a-z][\w.-]*)(?:\s+(?P<w>[a-z][\w.-]*))?\s*(?:\#[^\n]*)?$",
        {"v": "host", "w": "host"},
        learn=True,
        judge=judges.host,
    ),
    _form(
        "host-option",
        r"--(?:master[_-]addr|rdzv[_-]endpoint|host|hosts|node-?ip-?address)[ =]\s{0,3}['\"]?[a-z]",
        r"--(?:master[_-]addr|rdzv[_-]endpoint|hosts?|node-?ip-?address)[ =]\s{0,3}['\"]?(?P<v>[a-z][\w.-]*)",
        "host",
        learn=True,
        judge=judges.host,
    ),
    _form(
        "kubernetes-node",
        r"\bnode(?:_id)?['\"\\]{0,3}\s{0,8}[=:]\s{0,20}['\"\\]{0,3}[a-z0-9]+-[a-z0-9]",
        rf"(?<![A-Za-z])node{_Q}\s{{0,8}}[=:]\s{{0,20}}{_Q}(?P<v>[a-z0-9]+(?:-[a-z0-9]+)+(?:\.[a-z][\w.-]*)?)(?![\w-])",
        "host",
        learn=True,
        judge=judges.host,
    ),
    _form("hostfile", r"^[a-z][\w.-]*\s+slots=\d", r"^(?P<v>[a-z][\w.-]*)\s+slots=\d+", "host", learn=True, judge=judges.host),
    _form(
        "lookup",
        (r"resolve host(?:name)?[: ]", r"\blookup [\w.-]+", r"connect to host [a-z]"),
        r"(?:resolve\ host(?:name)?:?\ |\blookup\ |connect\ to\ host\ )['\"]?(?P<v>[a-z][\w.-]*[a-z0-9])",
        "host",
        learn=True,
        judge=lambda m: judges.host(m) and re.search(rb"[\d.-]", m["v"]) is not None,
    ),
    _form(
        "mount",
        (r"^[\w.-]+:/\S+\s+(?:on\s+/|\d)", r"\\\\[\w.-]+\\"),
        r"(?:^(?P<v>[a-z0-9][\w.-]+):/\S+\s+(?:on\s+/|\d)|(?<![\\\w:])\\\\(?P<w>[a-z][\w.-]+)\\\w)",
        {"v": "host", "w": "host"},
        learn=True,
        judge=lambda m: judges.host_like(m["v"] or m["w"]),
    ),
    _form(
        "domain",
        r"[a-z0-9-]\.[a-z0-9-]+\.(?:com|cn)|[a-z0-9-]\.(?:com|cn|net|org|io)[:/]",
        r"(?<![\w./@-])(?P<v>[a-z0-9][a-z0-9-]*(?:\.[a-z0-9][a-z0-9-]*)*\.(?:com\.cn|edu\.cn|gov\.cn|org\.cn|net\.cn|com|cn|(?:net|org|io)(?=:\d|/)))(?![\w-]|\.\w)",
        "host",
        learn=True,
        judge=judges.site,
    ),
    _form(
        "shell-prompt",
        r"[\w.-]@[\w.-]+(?::[~/]|\s[~/\w.-]+\][#$]|\))",
        r"(?:^|[\s\[(])(?P<u>[a-z_][\w.-]{0,40})@(?P<v>[a-z0-9][\w.-]{0,80})(?=:[~/]|\s[~/\w.-]{1,80}\][\#$]|\))",
        {"u": "user", "v": "host"},
        learn=True,
        judge=judges.host,
    ),
    _form(
        "remote-login",
        r"\b(?:ssh|scp|sftp|rsync)\s[^\n]*[\w.-]@",
        r"\b(?:ssh|scp|sftp|rsync)\b[^\n]{0,400}?\s(?P<u>[a-z_][\w.-]{0,40})@(?P<v>[a-z0-9][\w.-]{0,80})",
        {"u": "user", "v": "host"},
        learn=True,
        judge=judges.host,
    ),
    _form(
        "host",
        r"(?:host_?name|node_?name|master_addr|pod_?name|_machine|hostid)['\"\\]{0,3}\s{0,20}[=:]",
        rf"(?<![a-z])(?:(?:static|transient|pretty|my|the)[ _])?_?(?:host_?name|nodename|node_name|master_addr|pod_?name){_EQ}{_Q}(?P<v>[a-z0-9][\w.-]{{1,80}})",
        "host",
        learn=True,
        judge=judges.host,
    ),
    _form(
        "syslog-host",
        r"^(?:<\d+>)?[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8}\S{0,10} [\w.-]+ [\w./()-]+(?:\[\d+\])?:",
        r"^(?:<\d+>)?[A-Z][a-z]{2}\ [\ 0-9]\d\ \d\d:\d\d:\d\d(?:\.\d+)?\ (?P<v>[\w.-]+)\ [\w./()-]+(?:\[\d+\])?:",
        "host",
        learn=True,
        judge=judges.host,
        case=True,
    ),
    _form(
        "iso-host",
        r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,20} [\w.-]+ [\w./-]+(?:\[\d+\])?: ",
        r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:[+-]\d\d:?\d\d|Z)?\ (?P<v>[a-z][\w.-]*)\ [\w./-]+(?:\[\d+\])?:\ ",
        "host",
        learn=True,
        judge=lambda m: judges.host(m) and re.search(rb"[\d-]", m["v"]) is not None,
    ),
    _form("uname", r"^Linux \S+ \d+\.\d", r"^Linux\ (?P<v>\S+)\ \d+\.\d+", "host", learn=True, judge=judges.host, case=True),
    _form("switch-host", r"\S+ %%\d\d\w+/\d/", r"\d\ (?P<v>[\w.-]+)\ %%\d\d\w+/\d/", "host", learn=True, judge=judges.host),
    _form(
        "platform-pod",
        r"^\[\d{4}-\d\d-\d\d [\d:.,]+\]\[[\w.-]+\] ",
        r"^\[\d{4}-\d\d-\d\d\ [\d:.,]+\]\[(?P<v>[\w.-]{6,})\]\ ",
        "host",
        learn=True,
        judge=lambda m: judges.host(m) and b"-" in m["v"],
    ),
    _form(
        "pod",
        r"[a-z0-9]-[0-9a-f]{8,10}-[a-z0-9]{5}",
        r"(?<![\w.-])(?P<v>[a-z][a-z0-9-]{1,50}-[0-9a-f]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5})(?![\w-])",
        "host",
        learn=True,
        case=True,
    ),
    _form("site", r"https?://[\w.-]+\.", r"https?://(?:[^\s/@]+@)?(?P<v>[a-z0-9][\w.-]*\.[a-z][\w-]*)", "host", learn=True, judge=judges.site),
    _form(
        "registry",
        r"image['\"\\]{0,3}\s{0,8}[=:]\s{0,8}['\"]?[\w-]+\.",
        rf"\bimage{_EQ}{_Q}(?P<v>[a-z0-9][\w-]*(?:\.[\w-]+)+)(?::\d+)?/",
        "host",
        learn=True,
        judge=judges.site,
    ),
    _form(
        "inner-name",
        r"\w\.(?:corp|internal|intranet|intra|lan|local|localdomain|home|private|cluster)",
        r"(?<![\w.-])(?P<v>(?:[a-z0-9][\w-]*\.)+(?:corp|internal|intranet|intra|lan|local|localdomain|home|private|cluster))(?![\w-])",
        "host",
        learn=True,
        judge=judges.inner_site,
    ),
    # -- addresses and numbers
    _form(
        "address",
        r"\d\.\d{1,3}\.\d{1,3}\.\d",
        r"(?<![\d.])(?P<v>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?![\d]|\.\d)",
        "address",
        judge=judges.address,
    ),
    _form(
        "address6",
        (r"(?:[0-9a-f]{1,4}:){7}[0-9a-f]", r"[23f][0-9a-f]{3}(?::[0-9a-f]{1,4}){0,5}::", r"::ffff:"),
        r"(?<![\w:.])(?P<v>(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}:){1,6}:(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,5})?|::ffff:\d{1,3}(?:\.\d{1,3}){3})(?![\w:])",
        "address6",
        judge=judges.address6,
    ),
    _form(
        "mac",
        (r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}", r"[0-9a-f]{2}(?:-[0-9a-f]{2}){5}", r"[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}"),
        r"(?<![0-9a-f:-])(?P<v>[0-9a-f]{2}(?P<sep>[:-])[0-9a-f]{2}(?:(?P=sep)[0-9a-f]{2}){4}(?:(?:(?P=sep)[0-9a-f]{2}){2})?|[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4})(?![0-9a-f:]|-[0-9a-f]{2})",
        "mac",
        judge=lambda m: judges.mac(m) or b"." in m["v"],
    ),
    _form(
        "uuid",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-",
        r"(?<![0-9a-f-])(?P<v>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?![0-9a-f])",
        "uuid",
        judge=judges.not_all,
    ),
    _form("id-64", r"[0-9a-f]{64}", r"(?<![A-Za-z0-9_])(?P<v>[0-9a-f]{64})(?![A-Za-z0-9_])", "hex", judge=judges.not_all),
    _form("id-32", r"[0-9a-f]{32}", r"(?<![A-Za-z0-9_])(?P<v>[0-9a-f]{32})(?![A-Za-z0-9_])", "hex", judge=judges.not_all),
    _form(
        "container",
        (r"(?:container|docker|cri-o|crio|sandbox|pod)[\w./: =\"'-]{0,24}[0-9a-f]{12}", r"^[0-9a-f]{12}\s"),
        r"(?:(?:container|docker|cri-o|crio|sandbox|pod)[\w./:\ =\"'-]{0,24}?|^)(?<![0-9a-f])(?P<v>[0-9a-f]{12})(?![0-9a-z])",
        "hex",
        learn=True,
        judge=lambda m: not m["v"].isdigit() and not m["v"].isalpha(),
    ),
    _form(
        "serial",
        r"(?:serial|\bsn\b|[-_ ]sn\b|asset|barcode|elabel|die[ _]?id)[^\n]{0,40}[=:]",
        rf"(?:(?<![a-z])serial(?:[ _-]?(?:number|num|no\.?))?|(?<![a-z])sn|asset[ _-]?tag|barcode|elabel){_EQ}{_Q}(?P<v>[a-z0-9][\w./-]{{4,}})",
        "serial",
        learn=True,
        judge=judges.serial,
    ),
    _form("die", r"die[ _]?id", r"[vnu]?die[ _]?id\s{0,30}[:=]\s{0,8}(?P<v>[0-9a-f]{8}(?:[ -][0-9a-f]{8}){1,})", "hex", learn=True),
)
