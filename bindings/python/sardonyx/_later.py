# SPDX-License-Identifier: Apache-2.0
"""Names of onnxruntime that can be imported and not yet be used: each fails when it is called.

NAMES is the list: module below the package -> its names. A name that begins with a capital is a class.
"""
import importlib
import sys
import types
from importlib.machinery import ModuleSpec

NAMES = {
    "quantization.base_quantizer": "BaseQuantizer QuantizationParams",
    "quantization.calibrate":
        "CalibraterBase CalibrationDataCollector DistributionCalibrater EntropyCalibrater "
        "HistogramCalibrater HistogramCollector MinMaxCalibrater PercentileCalibrater TensorData "
        "TensorsData create_calibrator entropy load_tensors_data rel_entr save_tensors_data",
    "quantization.cuda_quantizer": "CudaQuantizer has_cuda_weight_prepacking",
    "quantization.execution_providers": "",
    "quantization.execution_providers.qnn":
        "get_qnn_qdq_config qnn_preprocess_model FusionLpNormalization",
    "quantization.fusions":
        "FusionGelu FusionLayerNormalization ReplaceUpsampleWithResize",
    "quantization.matmul_bnb4_quantizer": "MatMulBnb4Quantizer",
    "quantization.matmul_nbits_quantizer":
        "DefaultWeightOnlyQuantConfig DefaultWeightOnlyQuantizer GPTQWeightOnlyQuantConfig "
        "HQQWeightOnlyQuantConfig HQQWeightOnlyQuantizer KQuantWeightOnlyQuantConfig MatMulNBitsQuantizer "
        "NVAWQWeightOnlyQuantConfig NVAWQWeightOnlyQuantizer RTNWeightOnlyQuantConfig "
        "WeightOnlyQuantConfig",
    "quantization.onnx_model": "ONNXModel",
    "quantization.onnx_quantizer": "ONNXQuantizer",
    "quantization.operators": "",
    "quantization.preprocess": "parse_arguments",
    "quantization.qdq_loss_debug":
        "collect_activations compute_activation_error compute_signal_to_quantization_noice_ratio "
        "compute_weight_error create_activation_matching create_weight_matching "
        "modify_model_output_intermediate_tensors",
    "quantization.qdq_quantizer": "QDQQuantizer QDQTensorQuantInfo",
    "quantization.quant_utils":
        "BiasToQuantize QuantizedInitializer QuantizedValue add_infer_metadata "
        "add_pre_process_metadata attribute_to_kwarg compute_data_quant_params compute_scale_zp "
        "compute_scale_zp_float8 find_by_name get_qmin_qmax_for_qType get_qrange_for_qType "
        "load_model_with_shape_infer model_has_external_data model_has_infer_metadata "
        "model_has_pre_process_metadata normalize_axis optimize_model pack_bytes_to_4bit "
        "quantize_data quantize_nparray quantize_onnx_initializer "
        "save_and_reload_model_with_shape_infer smooth_distribution tensor_proto_to_array "
        "write_calibration_table",
    "quantization.quantize":
        "DynamicQuantConfig QuantConfig StaticQuantConfig check_static_quant_arguments get_qdq_config "
        "quantize quantize_dynamic quantize_static",
    "quantization.registry": "CreateDefaultOpQuantizer CreateOpQuantizer CreateQDQQuantizer",
    "quantization.shape_inference": "quant_pre_process",
    "quantization.tensor_quant_overrides": "QuantTypeInfo TensorQuantOverridesHelper",
    "tools.check_onnx_model_mobile_usability": "check_usability",
    "tools.convert_onnx_models_to_ort": "convert_onnx_models_to_ort",
    "tools.make_dynamic_shape_fixed": "make_dynamic_shape_fixed_helper",
    "tools.onnx_model_utils":
        "ModelProtoWithShapeInfo fix_output_shapes get_opsets_imported get_optimization_level "
        "get_producer_consumer_maps iterate_graph_per_graph_func iterate_graph_per_node_func "
        "make_dim_param_fixed make_input_shape_fixed optimize_model remove_invalid_dim_values "
        "replace_invalid_dim_param_values update_onnx_opset",
    "tools.optimize_onnx_model": "optimize_model_helper",
    "tools.symbolic_shape_infer": "SymbolicShapeInference",
    "tools.update_onnx_opset": "update_onnx_opset_helper",
    "transformers.convert_to_packing_mode": "PackingMode",
    "transformers.dynamo_onnx_helper": "DynamoOnnxHelper",
    "transformers.float16":
        "convert_float_to_float16 convert_np_to_float16 convert_tensor_float_to_float16 "
        "float_to_float16_max_diff make_value_info_from_tensor",
    "transformers.fusion_attention": "AttentionMask FusionAttention",
    "transformers.fusion_base": "Fusion",
    "transformers.fusion_options": "AttentionMaskFormat AttentionOpType FusionOptions",
    "transformers.fusion_utils": "FusionUtils NumpyHelper",
    "transformers.io_binding_helper": "CudaSession GpuBindingManager IOBindingHelper TypeHelper",
    "transformers.onnx_model": "OnnxModel",
    "transformers.onnx_model_bart": "BartOnnxModel",
    "transformers.onnx_model_bert": "BertOnnxModel",
    "transformers.onnx_model_bert_keras": "BertOnnxModelKeras",
    "transformers.onnx_model_bert_tf": "BertOnnxModelTF",
    "transformers.onnx_model_clip": "ClipOnnxModel",
    "transformers.onnx_model_conformer": "ConformerOnnxModel",
    "transformers.onnx_model_gpt2": "Gpt2OnnxModel",
    "transformers.onnx_model_phi": "PhiOnnxModel",
    "transformers.onnx_model_sam2": "Sam2OnnxModel",
    "transformers.onnx_model_t5": "T5OnnxModel",
    "transformers.onnx_model_tnlr": "TnlrOnnxModel",
    "transformers.onnx_model_unet": "UnetOnnxModel",
    "transformers.onnx_model_vae": "VaeOnnxModel",
    "transformers.onnx_utils": "extract_raw_data_from_model has_external_data",
    "transformers.optimizer":
        "get_fusion_statistics optimize_by_fusion optimize_by_onnxruntime optimize_model",
    "transformers.shape_infer_helper": "SymbolicShapeInferenceHelper",
    "transformers.shape_optimizer": "BertOnnxModelShapeOptimizer",
}


def _refusal(module, name):
    """A function that raises; it stands for `name` or for the making of it."""
    def refuse(*arguments, **named):
        raise NotImplementedError(f"{module}.{name} is not part of Sardonyx yet; it needs ONNX Runtime's "
                                  "own package")
    return refuse


def make(module, name):
    """What stands for `name` of `module`: a class or a function that raises NotImplementedError."""
    refuse = _refusal(module, name)
    if not name[0].isupper() or name.startswith("Create"):
        refuse.__name__ = refuse.__qualname__ = name
        refuse.__module__ = module
        return refuse
    return type(name, (), {"__init__": refuse, "__module__": module})


def fill(module, space):
    """Puts the names of `module` that its namespace `space` lacks into it."""
    for name in NAMES[module.split(".", 1)[1]].split():
        space.setdefault(name, make(module, name))


def _module(name, doc, is_package):
    """A new module or package, in its place; the one above it is there."""
    module = types.ModuleType(name, doc)
    module.__spec__ = ModuleSpec(name, None, is_package=is_package)
    module.__package__ = name if is_package else name.rpartition(".")[0]
    if is_package:
        module.__path__ = []
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    setattr(sys.modules[parent], last, module)
    return module


def fill_package(package, space):
    """Makes the modules below `package` that are no files, so that they can be imported."""
    root, _, below = package.partition(".")
    for short in NAMES:
        name = f"{root}.{short}"
        if not short.startswith(below + ".") or name in sys.modules:
            continue
        module = _module(name, f"Part of {package}; see {__name__}.",
                         any(other.startswith(short + ".") for other in NAMES))
        fill(name, vars(module))


def mirror(package, space):
    """Fills `package` ("onnxruntime.quantization"), whose namespace is `space`, with what is in
    sardonyx under that name, and makes modules like those below it, with the same classes."""
    own = f"sardonyx.{package.partition('.')[2]}"
    importlib.import_module(own)
    for name in sorted(name for name in sys.modules if f"{name}.".startswith(own + ".")):
        module, to = sys.modules[name], space
        if name != own:
            to = vars(_module(package + name[len(own):], module.__doc__, hasattr(module, "__path__")))
        to.update((key, value) for key, value in vars(module).items()
                  if not key.startswith("__") and not isinstance(value, types.ModuleType))
