// SPDX-License-Identifier: Apache-2.0
package cafetiere.dsl

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

import scala.util.Random

import cafetiere.protobuf.Descriptors.FieldDescriptor
import cafetiere.protobuf.Descriptors.FieldDescriptor.JavaType
import cafetiere.protobuf.{Message => Proto}
import caffe.Caffe.{LayerParameter, NetParameter, SolverParameter}
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

/** From the language to prototxt and back, nothing is lost. */
class RoundTripTest {
  private val root = Paths.get(sys.props("root"))

  @Test def everyNetAndSolverOfTheRepository(): Unit = {
    val (solvers, nets) = Seq("bench", "examples", "tests")
      .flatMap(folder => prototxts(root.resolve(folder)))
      .partition(_.toString.contains("solver"))
    assertTrue(nets.size > 10 && solvers.size > 10)
    for (path <- nets) {
      val net = Net.parse(text(path))
      assertEquals(net, Net.parse(net.toString), path.toString)
      val expected = NetParameter.newBuilder()
      cafetiere.protobuf.TextFormat.merge(text(path), expected)
      assertEquals(expected.build(), net.toProto, path.toString)
    }
    for (path <- solvers) {
      val solver = Solver.parse(text(path))
      assertEquals(solver, Solver.parse(solver.toString), path.toString)
    }
  }

  @Test def everyTypeWithAnyFields(): Unit =
    for (layerType <- LayerTypes.all; seed <- 0 until 10) {
      val random = new Random(seed)
      val proto = draw(layerType, random)
      val layer = Layer.of(proto)
      assertEquals(proto, layer.toProto)
      assertEquals(layer, layerType.parse(layer.toString))
    }

  @Test def solversWithAnyFields(): Unit =
    for (seed <- 0 until 10) {
      val random = new Random(seed)
      val builder = SolverParameter.newBuilder()
      fill(builder, random, SolverParameter.getDescriptor.getFields.toArray.toSeq
        .map(_.asInstanceOf[FieldDescriptor]).filter(_.getJavaType != JavaType.MESSAGE))
      val solver = Solver.of(builder.build())
      assertEquals(builder.build(), solver.toProto)
      assertEquals(solver, Solver.parse(solver.toString))
    }

  /** A layer with random values in a random choice of the fields that its type has. */
  private def draw(layerType: LayerType[_ <: Layer], random: Random): LayerParameter = {
    val fields = layerType.codec.fields
    val builder = LayerParameter.newBuilder().setName("a").setType(layerType.kind)
    for ((outer, field) <- fields if field.getName != "name" && (random.nextBoolean() || field.isRequired))
      fill(outer.fold[Proto.Builder](builder)(builder.getFieldBuilder), random, Seq(field))
    // A message with nothing inside says nothing.
    for ((Some(outer), _) <- fields if builder.getFieldBuilder(outer).getAllFields.isEmpty)
      builder.clearField(outer)
    builder.build()
  }

  private def fill(to: Proto.Builder, random: Random, fields: Seq[FieldDescriptor]): Unit =
    for (field <- fields)
      if (field.isRepeated)
        for (_ <- 0 until random.nextInt(3)) to.addRepeatedField(field, value(to, field, random))
      else to.setField(field, value(to, field, random))

  private def value(to: Proto.Builder, field: FieldDescriptor, random: Random): Any =
    field.getJavaType match {
      case JavaType.INT => Int.box(random.nextInt(1000))
      case JavaType.LONG => Long.box(random.nextInt(1000).toLong)
      case JavaType.FLOAT => Float.box(random.nextFloat())
      case JavaType.DOUBLE => Double.box(random.nextDouble())
      case JavaType.BOOLEAN => Boolean.box(random.nextBoolean())
      case JavaType.STRING => "text " + random.nextInt(10)
      case JavaType.ENUM =>
        val values = field.getEnumType.getValues
        values.get(random.nextInt(values.size))
      case JavaType.MESSAGE =>
        val inner = to.newBuilderForField(field)
        val all = field.getMessageType.getFields.toArray.toSeq.map(_.asInstanceOf[FieldDescriptor])
        fill(inner, random, all.filter(f => f.isRequired || random.nextBoolean()))
        inner.build()
      case other => throw new AssertionError(other)
    }

  private def prototxts(folder: Path): Seq[Path] = {
    val walk = Files.walk(folder)
    try walk.filter(_.toString.endsWith(".prototxt")).sorted().toArray.toSeq.map(_.asInstanceOf[Path])
    finally walk.close()
  }

  private def text(path: Path): String = new String(Files.readAllBytes(path), UTF_8)
}
