# SPDX-License-Identifier: Apache-2.0
"""CaffeClassifier and CaffeRegressor from Python: five lines train on a CSV."""

import csv
import datetime
import inspect
import random

import numpy
import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import BinaryClassificationEvaluator, RegressionEvaluator
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from pyspark.sql import functions

import cafetiere
from cafetiere.spark.ml import CaffeClassificationModel, CaffeClassifier, CaffeRegressor
from cafetiere.spark.params import ML_TABLE, ml_defaults

ROWS = 1500
BEST = 0.9  # one answer in ten is drawn against the rule


def rows():
    """Somebody buys by their age or, where it is not told, by their city."""
    drawn = random.Random(1)
    for number in range(ROWS):
        age = drawn.randrange(20, 80) if drawn.random() < 0.75 else ""
        city = drawn.randrange(20)
        buys = (age > 50 if age else city % 2 == 0) != (drawn.random() < 1 - BEST)
        day = datetime.date(2020, 1, 1) + datetime.timedelta(days=drawn.randrange(900))
        paid = 10 + 2 * drawn.randrange(10)
        yield number, age, f"city {city}", day, paid, paid * 3.5 + city % 2, "yes" if buys else "no"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "visitors.csv"
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["id", "age", "city", "since", "paid", "spent", "buys"])
        writer.writerows(rows())
    return path


@pytest.fixture(scope="module")
def table(spark, file):
    table = spark.read.csv(file.as_uri(), header=True, inferSchema=True)
    return table.repartition(3, "id").sortWithinPartitions("id").cache()


def classifier(**params):
    """The classes follow from two of the columns."""
    columns = ["age", "city", "since"]
    return CaffeClassifier(
        labelCol="buys", featuresCols=columns, idCol="id", numWorkers=2, batchSize=64, **params
    )


@pytest.fixture(scope="module")
def model(table):
    return classifier(maxEpochs=8, dropout=0.1, batchNorm=True, activation="Swish").fit(table)


def test_a_csv_is_learned(model, table):
    assert model.labels == ["no", "yes"] and model.numClasses == 2
    assert repr(model) == f"CaffeClassificationModel: uid={model.uid}, numClasses=2"
    right = model.transform(table).filter("predictedLabel = buys").count()
    assert right > (BEST - 0.05) * ROWS
    assert model.summary.rows_given == ROWS
    assert "TableData" in model.caffeModel.getNet()


def test_columns_that_nobody_names_are_learned_from(table):
    own = (
        'layer { name: "mine" type: "InnerProduct" bottom: "input" top: "mine"'
        ' inner_product_param { num_output: 9 weight_filler { type: "xavier" } } }'
    )
    rounds = CaffeClassifier(
        labelCol="buys", net=own, engine="rounds", syncMode="average", numWorkers=2, maxIter=10
    )
    fitted = rounds.fit(table.drop("id"))
    net = fitted.caffeModel.getNet()
    assert all(f'name: "{name}"' in net for name in ("age", "city", "since", "paid", "spent"))
    assert 'bottom: "mine"' in net
    assert fitted.summary.engine == "rounds"


def test_an_onnx_file_gives_hidden_layers_and_their_weights(table, tmp_path):
    onnx = pytest.importorskip("onnx")
    from cafetiere.proto import caffe_pb2

    values = numpy.linspace(-1, 1, 5, dtype=numpy.float32)[:, None]
    tensor = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Gemm", ["x", "w"], ["wide"], "wide", transB=1),
            onnx.helper.make_node("Tanh", ["wide"], ["bend"], "bend"),
        ],
        "net",
        [onnx.helper.make_tensor_value_info("x", tensor, [None, 1])],
        [onnx.helper.make_tensor_value_info("bend", tensor, [None, 5])],
        [onnx.numpy_helper.from_array(values, "w")],
    )
    file = tmp_path / "net.onnx"
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset), file)
    learner = CaffeRegressor(labelCol="spent", featuresCols=["paid"], numWorkers=1, baseLr=0.0)
    fitted = learner.setNet(file.as_uri()).setMaxIter(1).fit(table)
    net = caffe_pb2.NetParameter.FromString(fitted.caffeModel.weights)
    wide = next(layer for layer in net.layer if layer.name == "wide")
    assert list(wide.blobs[0].data) == values[:, 0].tolist()


def test_arrays_of_texts_and_of_codes(spark):
    rows = spark.range(600, numPartitions=2).selectExpr(
        "id",
        "if(id % 50 = 0, null, array('a', null, concat('word ', id % 20))) words",
        "transform(sequence(0, id % 3), i -> int(id % 17 + i)) codes",
        "if(id % 20 < 10 and id % 50 > 0, 'yes', 'no') liked",
    )
    learner = CaffeClassifier(
        labelCol="liked", idCol="id", categoricalCols=["codes"], batchSize=64, numWorkers=1
    )
    fitted = [learner.fit(table) for table in (rows, rows.repartition(3, "id"))]
    assert fitted[0].caffeModel.weights == fitted[1].caffeModel.weights
    scored = fitted[0].transform(rows)
    assert scored.filter("predictedLabel = liked").count() > 590


def test_what_is_refused_is_told_without_the_stack_of_java(table, tmp_path):
    priced = table.withColumn("buys", functions.col("id") / 7)
    with pytest.raises(cafetiere.Error, match="different numbers, such as .* regressor") as refused:
        classifier().fit(priced)
    assert refused.value.code == 1
    assert "\n" not in str(refused.value)
    with pytest.raises(OSError, match="cannot read .*no.onnx"):
        classifier(net=str(tmp_path / "no.onnx")).fit(table)
    for learn in (classifier().fit, classifier().explain):
        with pytest.raises(TypeError, match="not builtins.dict: spark.createDataFrame makes one"):
            learn({"buys": [1, 2]})


def test_a_net_spec_is_a_net():
    pytest.importorskip("google.protobuf")
    from cafetiere import NetSpec, layers

    spec = NetSpec()
    spec.rows = layers.Input()
    spec.wide = layers.InnerProduct(spec.rows, num_output=9)
    assert "num_output: 9" in CaffeClassifier(net=spec).getNet()


def test_a_pipeline_survives_the_disk(model, table, tmp_path):
    expected = [row.probability for row in model.transform(table).collect()]
    PipelineModel([model]).save(str(tmp_path / "pipeline"))
    loaded = PipelineModel.load(str(tmp_path / "pipeline")).stages[0]
    assert isinstance(loaded, CaffeClassificationModel)
    assert loaded.uid == model.uid
    assert [row.probability for row in loaded.transform(table).collect()] == expected
    classifier(layers=[7], dropout=0.25, thresholds=[0.5, 0.5]).save(str(tmp_path / "estimator"))
    again = CaffeClassifier.load(str(tmp_path / "estimator"))
    assert again.getLayers() == [7] and again.getDropout() == 0.25
    assert again.getThresholds() == [0.5, 0.5]


def test_a_regressor_in_a_cross_validation(table):
    # PySpark adds a column to tell the parts apart, and leaves it in them.
    table = table.select("paid", "spent")
    regressor = CaffeRegressor(labelCol="spent", numWorkers=1, batchSize=64)
    grid = ParamGridBuilder().addGrid(regressor.baseLr, [0.0, 0.05]).build()
    validator = CrossValidator(
        estimator=Pipeline(stages=[regressor.setLayers([]).setMaxEpochs(5)]),
        estimatorParamMaps=grid,
        evaluator=RegressionEvaluator(labelCol="spent"),
        numFolds=2,
        seed=1,
        collectSubModels=True,
    )
    best = validator.fit(table)
    assert "_rand" not in best.subModels[0][1].stages[0].caffeModel.getNet()
    assert best.avgMetrics[1] < 3 < 15 < best.avgMetrics[0]  # they vary by 20
    out = best.transform(table)
    assert RegressionEvaluator(labelCol="spent").evaluate(out) < 2


def test_weights_several_numbers_and_early_stopping(table):
    regressor = CaffeRegressor(labelCols=["paid", "spent"], featuresCols=["city", "paid2"])
    regressor.setIdCol("id").setWeightCol("id").setNumWorkers(2).setBatchSize(64)
    regressor.setValidationFraction(0.2).setPatience(2).setBaseLr(0.03).setLoss("huber")
    fitted = regressor.fit(table.selectExpr("*", "paid * 2 paid2"))
    assert fitted.getQuantiles() == [] and fitted.numOutputs == 2 and len(fitted.events) > 2
    told = fitted.summary.early_stopping
    assert told.curve[told.best_epoch][1] == told.best == min(value for _, value in told.curve)
    assert told.stopped == (len(told.curve) == told.best_epoch + 3)
    assert 0.7 * ROWS < fitted.summary.rows_given < 0.9 * ROWS
    row = fitted.transform(table.selectExpr("*", "paid * 2 paid2")).first()
    assert abs(row.prediction[0] - row.paid) < 3 and abs(row.prediction[1] - row.spent) < 9


def test_weights_of_several_labels_and_images(spark):
    pixels = "unhex(repeat(if(id % 2 = 0, 'FFF0FFE000100020', '00100020FFF0FFE0'), 8))"
    table = spark.range(0, 200, 1, 2).selectExpr(
        "id",
        "array(id % 2, int(id % 10 = 0)) labels",
        "id % 7 number",
        f"concat(cast('P5\n8 8\n255\n' as binary), {pixels}) photo",
    )
    columns = {"labelCol": "labels", "idCol": "id", "featuresCols": ["photo", "number"]}
    learned = CaffeClassifier(
        **columns, classWeights="1=20", imageSize=[4, 4], numWorkers=2, batchSize=32, maxEpochs=15
    ).fit(table)
    rows = learned.transform(table.drop("labels")).collect()
    assert all((row.probability[0] > 0.5) == row.id % 2 for row in rows)
    assert sum(row.probability[1] for row in rows) > 50  # 20 of 200, which count twenty times


def test_the_area_under_the_curve(model, table):
    out = model.transform(table).selectExpr("rawPrediction", "if(buys = 'yes', 1.0, 0.0) label")
    assert BinaryClassificationEvaluator().evaluate(out) > BEST - 0.06


def test_onnxruntime_says_the_same(model, table, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    others = table.filter("id < 1000").withColumn(
        "city", functions.expr("if(id % 9 = 0, null, if(id % 7 = 0, 'elsewhere', city))")
    )
    decided = model.copy({model.thresholds: [0.2, 0.8]})
    rows = decided.transform(others).toPandas()
    decided.exportOnnx((tmp_path / "model.onnx").as_uri())
    server = runtime.InferenceSession(str(tmp_path / "model.onnx"))
    names = [given.name for given in server.get_inputs()]
    assert sorted(names) == ["age", "city", "since"]
    feeds = {"age": rows["age"].to_numpy(float)[:, None]}
    feeds["city"] = rows["city"].fillna("").to_numpy(object)[:, None]
    feeds["since"] = rows["since"].to_numpy("datetime64[D]").astype("int64")[:, None]
    labels, probability = server.run(["predictedLabel", "probability"], feeds)
    assert labels.tolist() == rows["predictedLabel"].tolist()
    expected = numpy.array([row.toArray() for row in rows["probability"]])
    assert numpy.abs(probability - expected).max() < 1e-5
    assert (expected.argmax(axis=1) != (labels == "yes")).any()  # the thresholds tell


@pytest.mark.parametrize(
    ("cls", "parts"),
    [
        (CaffeClassifier, ("model", "classification", "estimator", "classifier")),
        (CaffeRegressor, ("model", "regression", "estimator", "regressor")),
    ],
)
def test_params_are_those_of_the_jvm(spark, cls, parts):
    estimator = cls()
    java = estimator._java_obj
    assert {param.name() for param in java.params()} == set(ml_defaults(*parts))
    for param in (param for part in parts for param in ML_TABLE[part]):
        name, default = param["name"], param["default"]
        value = java.getDefault(java.getParam(name)).get()
        assert (list(value) if isinstance(default, list) else value) == default, name
        assert java.getParam(name).doc() == estimator.getParam(name).doc
    for method in (cls.__init__, cls.setParams):
        keywords = {
            name: parameter.default
            for name, parameter in inspect.signature(method).parameters.items()
            if name != "self"
        }
        assert keywords == ml_defaults(*parts)
    with pytest.raises(Exception, match="set it to one of"):
        estimator.setOptimizer("adam")
