"""Make the golden token ids: what llama.cpp's `llama-tokenize` says of texts chosen to be awkward.

    python tests/golden/make_tokens.py LLAMA_TOKENIZE MODELS_FOLDER

writes, beside this file, `tokens-<model>.json` for each model, `tokens-pre.json` (SmolLM2's vocabulary under every
pre-tokenizer known here) and `tokens-sentencepiece.json` (a small vocabulary trained on the standard library by the
`sentencepiece` package, kept in the file).  Needs the packages `gguf` and `sentencepiece`.  `ids` are of the text as
plain text, `special_ids` of the same text where special tokens may be named.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gguf import GGUFReader, GGUFWriter

from twostroke.text.pretokenizers import PRETOKENIZERS

HERE = Path(__file__).parent
MODELS = ("smollm2-135m", "qwen2.5-coder-0.5b")

LANGUAGES = [
    "The quick brown fox jumps over the lazy dog. It's 5 o'clock, isn't it? They'll say we've won; I'd agree, "
    "you're right.",
    "IT'S OK, WE'LL SEE, THEY'RE, I'VE, DON'T 'S 'T 'LL' ''s 'Re o'Neill's",
    "Größere Straßen führen über den Rhein; „Übermut“ tut selten gut – süß!",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Ёжик в тумане?",
    "敏捷的棕色狐狸跳过懒狗。今天天气很好，我们去公园吧！《红楼梦》——曹雪芹",
    "素早い茶色の狐がのろまな犬を飛び越える。カタカナとｶﾀｶﾅ、ひらがな。",
    "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다.",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ومغلف بجلد أزرق ١٢٣٤٥",
    "दस हज़ार रुपये की किताबें ख़रीदीं। क्षत्रिय ज्ञान १२३ श्री",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓",
    "ξεσκεπάζω την ψυχοφθόρα βδελυγμία· Ελληνικά;",
    "דג סקרן שט בים מאוכזב ולפתע מצא לו חברה",
    "Příliš žluťoučký kůň úpěl ďábelské ódy. Pchnąć w tę łódź jeża. Türkçe: İstanbul ıIiİ",
    "Tiếng Việt: Con sói và chú cừu, đường phố Hà Nội",
    "ქართული ენა, հայերեն, አማርኛ, ᏣᎳᎩ, বাংলা, தமிழ், తెలుగు, ភាសាខ្មែរ",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛 ﬁ ﬀ Ⅷ ½ ² ₂ ① 〇 ㎏ ™ ª º",
]
CODE = [
    "def fib(n: int) -> int:\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n\n\n"
    "print([fib(i) for i in range(10)])\n",
    '#include <stdio.h>\nint main(void) {\n\tprintf("%d\\n", 0x1F + 1e-9 * 3.14159265);\n\treturn 0; // done\n}\n',
    "SELECT a.id, COUNT(*) FROM t AS a WHERE a.x >= 10 AND b <> 'c' GROUP BY 1;",
    '<div class="a b"><s>struck</s><br/></div>\n<!-- </s> --> &lt;s&gt;',
    "for (let i=0;i<n;++i){a[i]??=b?.c[i]**2}// === !== => ... `${x}`",
    '{"a": [1, 2.5, -3e10, null, true], "ü": "\\u00fc\\n"}',
    'fn main() { let v: Vec<&\'static str> = vec!["a"; 3]; println!("{:?}", v); }',
    "x=1;y=2;z=x+++y;w=x<<2>>1;self.__init__(**kwargs);a_b__c=__name__;camelCaseHTTPServer2Go",
    "diff --git a/x b/x\n@@ -1,3 +1,3 @@\n-old\r\n+new\r\n",
]
NUMBERS = [
    "1 12 123 1234 12345 123456 1234567 12345678901234567890",
    "3.14159 -2.5e10 0x1f 1,234,567.89 007 1/2 50% $9.99 2026-12-01T05:40:00Z v1.2.3 192.168.0.1",
    "a1b22c333d4444 1st 2nd ½1 ²3 ①② Ⅷ9 १२३456",
]
SPACES = [
    " ",
    "  ",
    "   ",
    "\t",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    " \n",
    "\n ",
    "\t\t\n",
    " a",
    "  a",
    "   a",
    "a ",
    "a  ",
    "a   b",
    "a\tb",
    "a\t\tb",
    "a \t b",
    "\ta",
    " \ta",
    "\t a",
    "a\nb",
    "a\n\nb",
    "a\n\n\n\nb",
    "a\r\nb",
    "a\r\n\r\nb",
    "a\n  b",
    "a  \n  b",
    "a\n \n b",
    "\n\n  x",
    "  \n\n  ",
    "a\u00a0b",
    "\u00a0\u00a0a",
    "a \u00a0 b",
    "a\u2003b",
    "a\u3000b",
    "a\u200bb",
    "a\u2028b\u2029c",
    "a\u0085b",
    "a\x0bb\x0cc",
    " " * 17,
    " " * 40 + "x",
    "x" + "\n" * 33 + "y",
    "\t" * 9 + "z",
    "    if x:\n        y\n\n    z\n",
    "hello \n",
    "?\n\n\n",
    "!! \n\n",
    ") {\r\n",
    "... \t\n  end",
]
MARKS = [
    "😀",
    "😀😃😄 👍🏽 ❤️ ☺ ♥️",
    "👨‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 🇩🇪🇫🇷🇯🇵 flags, 1️⃣ keycap",
    "a😀b 😀c\n😀",
    "🧑🏿‍🚀🧟‍♀️",
    "e\u0301 n\u0303 A\u030a o\u0308\u0304 \u0301x x\u0301\u0301\u0301 é ñ Å",
    "Z\u0351\u036b\u0343a\u0329\u0325l\u0348\u0333g\u033bo\u0356",
    "\u202eabc\u202c \ufeffbom x\ufeff",
    "\u200d\u200c\ufe0f",
    "“quotes” ‘single’ «guillemets» – — … • · ¿¡ §¶ †‡ ‰ €£¥₹ ±×÷≠≤≥∞√∑∫ ←↑→↓ ■□▲",
    "---- ==== **** #### ~~~~ ____ !!!! ???? .... ,,,, ;;;; ((([[[{{{ }}}]]])))",
    "a-b_c.d,e;f:g!h?i@j#k$l%m^n&o*p",
    "\x01\x02\x03\x07\x08\x1b[31mred\x1b[0m\x7f",
    "\ufffd \ufffe \uffff \U0001ffff \U0010ffff \ue000 \U000f0000",
    "\x00",
    "a\x00b",
    "ÿþ\x80\x9f\xa0\xad",
]
TEXTS = LANGUAGES + CODE + NUMBERS + SPACES + MARKS
PRE_TEXTS = ["\n".join(texts) for texts in (LANGUAGES, CODE, NUMBERS, SPACES, MARKS)]


def main() -> None:
    program, models = sys.argv[1], Path(sys.argv[2])
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory() as folder:
        ask = Ask(program, Path(folder))
        header = {
            "made_by": "tests/golden/make_tokens.py",
            "llama.cpp": (version.stderr + version.stdout).split("\n")[0],
        }
        for model in MODELS:
            write(
                f"tokens-{model}.json", header | {"model": model, "cases": list(cases(ask, models / f"{model}.gguf"))}
            )
        write("tokens-pre.json", header | {"model": MODELS[0], **pretokenizers(ask, models / f"{MODELS[0]}.gguf")})
        write("tokens-sentencepiece.json", header | sentencepiece(ask))


class Ask:
    """Runs `llama-tokenize` on one text after the other."""

    def __init__(self, program: str, folder: Path) -> None:
        self.program, self.folder = program, folder

    def __call__(self, model: Path, text: str, *, special: bool) -> list[int]:
        prompt = self.folder / "prompt"
        prompt.write_bytes(text.encode())
        options = ["--ids", "--no-bos", "--no-escape", *([] if special else ["--no-parse-special"])]
        command = [self.program, "-m", str(model), "-bf", str(prompt), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        ids: list[int] = json.loads(done.stdout)
        return ids


def cases(ask: Ask, model: Path) -> Iterator[dict[str, Any]]:
    """All texts, and every special or user-defined token's name alone, joined to words and in a row."""
    metadata = read(model)
    named = [
        token
        for token, kind in zip(metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"], strict=True)
        if kind in (2, 3, 4)
    ]
    for text in [*TEXTS, *named, "".join(named), *(f"a{name} b {name}c\n{name}\n" for name in named)]:
        yield {
            "text": text,
            "ids": ask(model, text, special=False),
            "special_ids": ask(model, text, special=True),
        }


def pretokenizers(ask: Ask, model: Path) -> dict[str, Any]:
    """The texts under one vocabulary and each pre-tokenizer."""
    metadata = read(model)
    pre: dict[str, list[list[int]]] = {}
    for name in sorted(PRETOKENIZERS):
        changed = vocabulary_file(ask.folder / "pre.gguf", metadata | {"tokenizer.ggml.pre": name})
        pre[name] = [ask(changed, text, special=False) for text in PRE_TEXTS]
    return {"texts": PRE_TEXTS, "pre": pre}


def sentencepiece(ask: Ask) -> dict[str, Any]:
    """A vocabulary of 1500 pieces of Python's own source, and the texts under it."""
    metadata = trained(ask.folder)
    model = vocabulary_file(ask.folder / "sp.gguf", metadata)
    texts = [*TEXTS, "<s>a</s>", "<unk>", "<0x41>", "▁a ▁ b▁", "a<s>b</s> c"]
    found = [
        {"text": text, "ids": ask(model, text, special=False), "special_ids": ask(model, text, special=True)}
        for text in texts
    ]
    return {"metadata": metadata, "cases": found}


def trained(folder: Path) -> dict[str, Any]:
    import sentencepiece as library

    source = Path(json.__file__).parent.parent
    text = "\n".join(path.read_text() for path in [source / "argparse.py", source / "typing.py", source / "ast.py"])
    (folder / "source.txt").write_text(text)
    library.SentencePieceTrainer.train(
        input=str(folder / "source.txt"),
        model_prefix=str(folder / "sp"),
        model_type="bpe",
        vocab_size=1500,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True,
        minloglevel=2,
    )
    model = library.SentencePieceProcessor(model_file=str(folder / "sp.model"))
    ids = range(model.get_piece_size())
    kinds = [2 if model.is_unknown(i) else 3 if model.is_control(i) else 6 if model.is_byte(i) else 1 for i in ids]
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [model.id_to_piece(i) for i in ids],
        "tokenizer.ggml.scores": [model.get_score(i) for i in ids],
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.bos_token_id": model.bos_id(),
        "tokenizer.ggml.eos_token_id": model.eos_id(),
        "tokenizer.ggml.unknown_token_id": model.unk_id(),
    }


def read(model: Path) -> dict[str, Any]:
    return {key: field.contents() for key, field in GGUFReader(model).fields.items() if not key.startswith("GGUF.")}


def vocabulary_file(path: Path, metadata: Mapping[str, Any]) -> Path:
    """A GGUF file with `metadata` and no weights."""
    writer = GGUFWriter(path, str(metadata["general.architecture"]))
    for key, value in metadata.items():
        if key == "general.architecture":
            continue
        if isinstance(value, list):
            writer.add_array(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        else:
            writer.add_float32(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def write(name: str, content: Mapping[str, Any]) -> None:
    (HERE / name).write_text(json.dumps(content, ensure_ascii=True, indent=None).replace('{"text"', '\n{"text"') + "\n")


if __name__ == "__main__":
    main()
