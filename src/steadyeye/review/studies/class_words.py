"""The words by which people find a class: its synonyms and hypernyms in WordNet."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from steadyeye.data.classes import meanings, wordnet

MOST = 150  # classes that a word finds; "animal" finds hundreds of ImageNet's, and helps nobody


def list_class_words(names: Sequence[str]) -> Mapping[str, Sequence[int]]:
    """Word in lower case → the classes that it finds, as indices of `names`, nearest kinds first.

    The words are the WordNet nouns of a class and of its hypernyms: "dog" finds every breed. Names
    of classes are left out, and words that find more than `MOST`. Classes that no shipped list
    knows have none.
    """
    classes_of: dict[str, dict[int, int]] = defaultdict(dict)
    for index, name in enumerate(names):
        wnid = meanings.wnid_of(name, tuple(names))
        for above, steps in wordnet.steps(wnid).items() if wnid else ():
            entry = wordnet.synsets().get(above)
            for lemma in entry.lemmas if entry else ():
                word = wordnet.plain(lemma)
                classes_of[word][index] = min(steps, classes_of[word].get(index, steps))
    own = {wordnet.plain(name) for name in names}
    return {
        word: sorted(classes, key=lambda index: (classes[index], index))
        for word, classes in sorted(classes_of.items())
        if len(classes) <= MOST and not (word in own and len(classes) == 1)
    }
