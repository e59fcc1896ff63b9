"""Tokens by name: files of them, quotas, and that no token is shown to anybody."""

from __future__ import annotations

import hashlib
import json

import pytest

from routelearn.errors import InputError
from routelearn.serve.limits import Refused
from routelearn.serve.tokens import Allowance, Caller, Callers, Token, digest_of, read_tokens

GOOD = "a long enough token"


def read(folder, text, name="tokens.toml"):
    (folder / name).write_text(text)
    return read_tokens(str(folder / name))


def test_toml_and_json_say_the_same(tmp_path):
    toml = (
        f'[[token]]\nname = "a"\ntoken = "{GOOD}"\njobs = 3\n[[token]]\nname = "b"\nsha256 = "{digest_of("other")}"\n'
    )
    entries = [{"name": "a", "token": GOOD, "jobs": 3}, {"name": "b", "sha256": digest_of("other")}]
    expected = [Token("a", digest_of(GOOD), None, None, 3), Token("b", digest_of("other"))]
    assert read(tmp_path, toml) == read(tmp_path, json.dumps({"token": entries}), "tokens.json") == expected
    assert digest_of(GOOD) == hashlib.sha256(GOOD.encode()).hexdigest(), "as sha256sum prints it"
    assert GOOD not in repr(expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[token]\n", "tokens.toml: not TOML (Expected ']]'"),
        ("", 'a list of entries called "token" is needed, and nothing else'),
        ('[[token]]\nname = "a"\n[other]\n', 'a list of entries called "token" is needed, and nothing else'),
        ("token = [3]", "tokens.toml, token 1: holds 3; keys and values are needed"),
        ("[[token]]\ntoken = 'x'", "tokens.toml, token 1: name is None; up to 40 letters"),
        ("[[token]]\nname = 'a b'", "name is 'a b'; up to 40 letters, digits, dots and dashes"),
        ("[[token]]\nname = 'ROUTELEARN_TOKEN'", "this name is for the token of the environment; choose another"),
        ("[[token]]\nname = 'a'", "token 1 (a): give either token or sha256"),
        (f"[[token]]\nname = 'a'\ntoken = '{GOOD}'\nsha256 = 'x'", "give either token or sha256"),
        ("[[token]]\nname = 'a'\ntoken = 'short'", "the token has less than 16 characters; make one with: python -c"),
        ("[[token]]\nname = 'a'\nsha256 = 'ABC'", "sha256 is not 64 hexadecimal digits in lower case"),
        (
            f"[[token]]\nname = 'a'\ntoken = '{GOOD}'\nsecond = 1",
            "'second' is not known; the keys are name, token, sha",
        ),
        (f"[[token]]\nname = 'a'\ntoken = '{GOOD}'\njobs = 0", "jobs is 0; a whole number above 0 is needed, or leave"),
        (f"[[token]]\nname = 'a'\ntoken = '{GOOD}'\njobs = 1.5", "jobs is 1.5; a whole number above 0"),
        (f"[[token]]\nname = 'a'\ntoken = '{GOOD}'\nrequests_per_minute = true", "is True; a number above 0 is needed"),
        (f"[[token]]\nname = 'a'\ntoken = '{GOOD}'\nsearch_seconds_per_hour = nan", "a number above 0 is needed"),
        (f"[[token]]\nname = 'a'\ntoken = '{GOOD}'\n" * 2, "token 2: the name a is that of token 1; change one"),
        (f"[[token]]\nname = 'a'\ntoken = '{GOOD}'\n[[token]]\nname = 'b'\ntoken = '{GOOD}'", "the same token as a"),
    ],
)
def test_a_bad_file_is_refused_in_one_line_that_shows_no_token(tmp_path, text, words):
    with pytest.raises(InputError) as refused:
        read(tmp_path, text)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert GOOD not in str(refused.value)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match=r"none.toml: cannot be read \(No such file"):
        read_tokens(str(tmp_path / "none.toml"))


def test_the_caller_is_the_one_whose_token_it_is():
    callers = Callers([Token("a", digest_of("one")), Token("b", digest_of("two"))])
    assert callers.find(b"Bearer two").name == "b"
    assert callers.find(b"bearer  one ").name == "a"
    for wrong in (b"", b"Bearer", b"Bearer three", b"Basic one", b"one", b"Bearer " + digest_of("one").encode()):
        assert callers.find(wrong) is None
    assert Callers([]).find(b"").name == "", "anyone, where no token is asked for"


def test_every_token_is_compared_also_after_the_right_one(monkeypatch):
    from routelearn.serve import tokens

    compared = []
    monkeypatch.setattr(tokens.hmac, "compare_digest", lambda a, b: compared.append(b) or a == b)
    callers = Callers([Token(name, digest_of(name)) for name in "abc"])
    assert callers.find(b"Bearer a").name == "a"
    assert len(compared) == 3


class Clock:
    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr("routelearn.serve.tokens.time.monotonic", lambda: self.now)


def test_an_allowance_refills_evenly_and_says_when_to_come_again(monkeypatch):
    clock = Clock(monkeypatch)
    allowance = Allowance("requests_per_minute", 3, 60)
    for _ in range(3):
        allowance.take(1, "x")
    with pytest.raises(Refused) as refused:
        allowance.take(1, "x")
    told = refused.value
    assert (told.status, told.limit, told.value, told.headers()) == (
        429,
        "requests_per_minute",
        3,
        {"retry-after": "20"},
    )
    clock.now = 19.9
    with pytest.raises(Refused):
        allowance.take(1, "x")
    clock.now = 20.1
    allowance.take(1, "x")
    clock.now = 1e6
    allowance.take(3, "x")
    with pytest.raises(Refused):
        allowance.take(1, "it never holds more than a period's")


def test_what_exceeds_the_whole_allowance_is_bad_input_and_not_to_be_tried_again():
    with pytest.raises(Refused) as refused:
        Allowance("search_seconds_per_hour", 10, 3600).take(11, "11 seconds")
    assert (refused.value.status, refused.value.headers()) == (422, {})


def test_search_time_that_was_not_used_is_given_back_and_more_is_owed(monkeypatch):
    Clock(monkeypatch)
    caller = Caller(Token("a", "", None, 10.0))
    caller.reserve(10)
    caller.settle(10, 4)
    caller.reserve(6)
    caller.settle(0, 5)  # a search that ends by count may take longer than was known
    with pytest.raises(Refused) as refused:
        caller.reserve(1)
    caller.reserve(0)  # a construction
    assert refused.value.headers()["retry-after"] == str(6 * 360)


# -------------------------------------------------------------------------------------------- by requests


@pytest.mark.extra
class TestRequests:
    def test_without_a_right_token_nothing_is_answered(self, guarded):
        for token in ("", "wrong", guarded.digest("many")):
            response = guarded.ask("GET", "/v1/problems", token)
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"

    def test_every_name_of_the_file_and_the_environment_may_ask(self, guarded):
        for token in (*map(guarded.token, ("many", "other")), guarded.unlimited):
            assert guarded.ask("GET", "/v1/models", token).status_code == 200

    def test_over_its_requests_a_token_is_told_when_and_others_are_answered(self, guarded):
        answers = [guarded.ask("GET", "/v1/models", guarded.token("two_requests")) for _ in range(4)]
        assert [one.status_code for one in answers] == [200, 200, 429, 429]
        told = answers[-1]
        assert told.json()["limit"] == "requests_per_minute"
        assert told.json()["value"] == 2
        assert 1 <= int(told.headers["retry-after"]) <= 60
        assert guarded.ask("GET", "/v1/models", guarded.token("many")).status_code == 200

    def test_over_its_search_time_a_token_may_still_construct(self, guarded):
        places = [[(37 * i) % 60, (23 * i) % 61] for i in range(60)]  # so many that the search takes all its time
        token, body = guarded.token("little_search"), {"coords": places}
        first = guarded.ask("POST", "/v1/solve", token, json=body | {"seconds": 0.8})
        assert first.status_code == 200
        second = guarded.ask("POST", "/v1/solve", token, json=body | {"seconds": 0.8})
        assert (second.status_code, second.json()["limit"]) == (429, "search_seconds_per_hour")
        assert int(second.headers["retry-after"]) > 60
        assert guarded.ask("POST", "/v1/solve", token, json=body | {"seconds": 5}).status_code == 422
        assert guarded.ask("POST", "/v1/solve", token, json=body | {"seconds": 0}).status_code == 200

    def test_counters_have_names_and_no_tokens(self, guarded):
        guarded.ask("GET", "/v1/models", guarded.token("many"))
        guarded.ask("GET", "/v1/models", "wrong")
        text = guarded.ask("GET", "/metrics").text
        assert 'routelearn_token_requests_total{status="200",token="many"}' in text
        assert "wrong" not in text
        for name in guarded.names:
            assert guarded.token(name) not in text
            assert guarded.digest(name) not in text
