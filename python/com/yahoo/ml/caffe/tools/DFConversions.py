# SPDX-License-Identifier: Apache-2.0
"""Captions of images as words and as numbers."""

import base64
import html

from pyspark.sql import SparkSession

from com.yahoo.ml.caffe._jvm import data_frame, jvm_class
from com.yahoo.ml.caffe.DisplayUtils import Html


class DFConversions:
    """Makes what a net for captions reads of images and their captions, and captions of numbers."""

    def __init__(self, sc):
        self._java = jvm_class(sc, "tools.Conversions")
        self._sql_context = SparkSession.builder.getOrCreate()._jsparkSession.sqlContext()

    def Coco2ImageCaptionFile(self, src, clusterSize):
        """A DataFrame with a row for each caption of a JSON file in COCO's form."""
        return data_frame(self._java.Coco2ImageCaptionFile(self._sql_context, src, clusterSize))

    def Image2Embedding(self, imageRootFolder, imageCaptionDF):
        """The images that column file names, as a net of CoSData reads them."""
        return data_frame(self._java.Image2Embedding(imageRootFolder, imageCaptionDF._jdf))

    def ImageCaption2Embedding(self, imageRootFolder, imageCaptionDF, vocab, captionLength):
        """The same with the captions as arrays of captionLength numbers."""
        frame = imageCaptionDF._jdf
        words = vocab.vocabObject
        return data_frame(
            self._java.ImageCaption2Embedding(imageRootFolder, frame, words, captionLength)
        )

    def Embedding2Caption(self, embeddingDF, vocab, embeddingColumn, captionColumn):
        """A further column with the sentences whose numbers are in embeddingColumn."""
        frame, words = embeddingDF._jdf, vocab.vocabObject
        return data_frame(
            self._java.Embedding2Caption(frame, words, embeddingColumn, captionColumn)
        )


def show_captions(df, nrows=10):
    """A table of id, image and prediction of the first rows.

    The columns are id, data, whose field image is a picture's file, and prediction.
    """
    lines = ["<table><tr><th>Image Id</th><th>Image</th><th>Prediction</th></tr>"]
    for row in df.take(nrows):
        image = base64.b64encode(bytes(row["data"]["image"])).decode()
        cells = [
            html.escape(str(row["id"])),
            f"<img src='data:;base64,{image}' />",  # the browser sees whether it is JPEG or PNG
            html.escape(str(row["prediction"])),
        ]
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return Html("".join(lines) + "</table>")
