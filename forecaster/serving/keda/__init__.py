"""External scaler of KEDA (gRPC): a process of its own that answers from the published table.

`service` is the protocol and answers what a ScaledObject asks for, `__main__` has the port and its certificates;
`externalscaler_pb2` is generated from the .proto beside it. Only this package loads gRPC.

After a change of the .proto, with grpcio-tools in some other environment, at the top of the repository:
`python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. forecaster/serving/keda/externalscaler.proto`
"""
