# SPDX-License-Identifier: Apache-2.0
"""The words of captions and their numbers."""

from pyspark.sql import SparkSession

from com.yahoo.ml.caffe._jvm import jvm_class, python_value


class Vocab:
    """0 begins and ends a sentence, 1 is any word that is not kept; those that are kept follow."""

    def __init__(self, sc):
        spark = SparkSession.builder.getOrCreate()
        self.vocabObject = jvm_class(sc, "tools.Vocab")(spark._jsparkSession.sqlContext())

    def genFromData(self, dataset, columnName, vocabSize=-1):
        """Takes the most frequent words of a column of sentences, or all with -1."""
        self.vocabObject.genFromData(dataset._jdf, columnName, vocabSize)

    def save(self, vocabFilePath):
        """Writes the words into a new folder."""
        self.vocabObject.save(vocabFilePath)

    def load(self, vocabFilePath):
        """Reads what save() wrote."""
        self.vocabObject.load(vocabFilePath)

    def word2indexMap(self):
        """A dict of each word's number."""
        return python_value(self.vocabObject.word2indexMap())

    def index2wordMap(self):
        """A dict of each number's word."""
        return python_value(self.vocabObject.index2wordMap())
